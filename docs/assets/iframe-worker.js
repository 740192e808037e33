"use strict";
/* Search on pages that are opened from the disk, where browsers start no workers: a hidden frame does their work. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow, script = inside.document.createElement("script");
      inside.postMessage = (data) => setTimeout(() => this.told(data)); // what the worker says
      inside.importScripts = (...urls) => Promise.all(urls.map((one) => IFrameWorker.loaded(inside, one)));
      this.ready = new Promise((done) => script.addEventListener("load", done));
      script.src = url;
      inside.document.body.append(script);
    }

    static loaded(inside, url) {
      const script = inside.document.createElement("script");
      script.src = url;
      inside.document.body.append(script);
      return new Promise((done) => script.addEventListener("load", done));
    }

    told(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }

    postMessage(data) { // what the worker is told
      this.ready.then(() => {
        const event = new MessageEvent("message", { data });
        this.frame.contentWindow.dispatchEvent(event);
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
