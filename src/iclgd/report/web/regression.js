"use strict";
/* Learners of an episode with one output, and a layer of linear attention, as the labs compute them. */
iclgd.regression = (() => {
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const times = (matrix, vector) => matrix.map((row) => dot(row, vector));

  /* Minus the label slot of e_q + P V (1/N) Σ_i e_i (e_iᵀ Kᵀ Q e_q), e_q = (x, 0). */
  function layer({ qk, pv }, x, y, query) {
    const asked = times(qk, [...query, 0]), read = Array(query.length + 1).fill(0);
    x.forEach((input, i) => {
      const token = [...input, y[i]], score = dot(token, asked) / x.length;
      token.forEach((value, j) => (read[j] += score * value));
    });
    return -dot(pv.at(-1), read);
  }

  /* One step from zero: (η/N) Σ_i y_i x_i · x. */
  const descent = (rate, x, y, query) => rate * x.reduce((sum, input, i) => sum + y[i] * dot(input, query), 0);

  /* w = (XᵀX + λI)⁻¹ Xᵀy, by elimination with pivots. */
  function ridge(lambda, x, y, query) {
    const size = query.length, rows = [];
    for (let i = 0; i < size; i++) {
      const row = [];
      for (let j = 0; j < size; j++) row.push(x.reduce((sum, input) => sum + input[i] * input[j], i === j ? lambda : 0));
      rows.push([...row, x.reduce((sum, input, n) => sum + input[i] * y[n], 0)]);
    }
    for (let i = 0; i < size; i++) {
      const pivot = rows.slice(i).reduce((best, row, n) => (Math.abs(row[i]) > Math.abs(rows[best][i]) ? n + i : best), i);
      [rows[i], rows[pivot]] = [rows[pivot], rows[i]];
      for (let n = 0; n < size; n++) {
        if (n === i) continue;
        const factor = rows[n][i] / rows[i][i];
        for (let j = i; j <= size; j++) rows[n][j] -= factor * rows[i][j];
      }
    }
    return dot(rows.map((row, i) => row[size] / row[i]), query);
  }

  /* The mean label of the k nearest demonstrations; of as near ones the earlier is taken. */
  function nearest(k, x, y, query) {
    const far = x.map((input) => Math.hypot(...input.map((value, j) => value - query[j])));
    const order = [...far.keys()].sort((a, b) => far[a] - far[b] || a - b).slice(0, k);
    return order.reduce((sum, i) => sum + y[i], 0) / order.length;
  }

  return { dot, times, layer, descent, ridge, nearest };
})();
