"""The documents whose sentences are here: who, when, what it is called, where it is found."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A document; ``told`` says which copy of it was read, where that is not the paper itself."""

    authors: str  # "Last, First and Last, First"
    year: int
    title: str
    arxiv: str = ""
    venue: str = ""
    told: str = ""

    @property
    def cited(self) -> str:
        """`von Oswald et al. 2023`."""
        names = [name.split(",")[0] for name in self.authors.split(" and ")]
        return f"{names[0]}{' et al.' if len(names) > 2 else f' and {names[1]}' if len(names) == 2 else ''} {self.year}"

    def bibtex(self, key: str) -> str:
        more = {"eprint": self.arxiv, "archivePrefix": "arXiv" if self.arxiv else "", "note": self.venue}
        fields = {"author": self.authors, "title": f"{{{self.title}}}", "year": str(self.year), **more}
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        return "\n".join([f"@misc{{{key},", *lines, "}"])


PAPERS = {
    "brown2020": Paper(
        "Brown, Tom and Mann, Benjamin and others", 2020, "Language Models are Few-Shot Learners", "2005.14165"
    ),
    "choromanski2021": Paper(
        "Choromanski, Krzysztof and Likhosherstov, Valerii and others",
        2021,
        "Rethinking Attention with Performers",
        "2009.14794",
    ),
    "garg2022": Paper(
        "Garg, Shivam and Tsipras, Dimitris and Liang, Percy and Valiant, Gregory",
        2022,
        "What Can Transformers Learn In-Context? A Case Study of Simple Function Classes",
        "2208.01066",
    ),
    "dai2022": Paper(
        "Dai, Damai and Sun, Yutao and Dong, Li and Hao, Yaru and Ma, Shuming and Sui, Zhifang and Wei, Furu",
        2022,
        "Why Can GPT Learn In-Context? Language Models Implicitly Perform Gradient Descent as Meta-Optimizers",
        "2212.10559",
    ),
    "akyurek2023": Paper(
        "Akyürek, Ekin and Schuurmans, Dale and Andreas, Jacob and Ma, Tengyu and Zhou, Denny",
        2023,
        "What learning algorithm is in-context learning? Investigations with linear models",
        "2211.15661",
    ),
    "vonoswald2023": Paper(
        "von Oswald, Johannes and Niklasson, Eyvind and Randazzo, Ettore and Sacramento, João and others",
        2023,
        "Transformers learn in-context by gradient descent",
        "2212.07677",
    ),
    "vonoswald2023b": Paper(
        "von Oswald, Johannes and Niklasson, Eyvind and Schlegel, Maximilian and others",
        2023,
        "Uncovering mesa-optimization algorithms in Transformers",
        "2309.05858",
    ),
    "ahn2023": Paper(
        "Ahn, Kwangjun and Cheng, Xiang and Daneshmand, Hadi and Sra, Suvrit",
        2023,
        "Transformers learn to implement preconditioned gradient descent for in-context learning",
        "2306.00297",
    ),
    "zhang2023": Paper(
        "Zhang, Ruiqi and Frei, Spencer and Bartlett, Peter",
        2023,
        "Trained Transformers Learn Linear Models In-Context",
        "2306.09927",
    ),
    "mahankali2023": Paper(
        "Mahankali, Arvind and Hashimoto, Tatsunori and Ma, Tengyu",
        2023,
        "One Step of Gradient Descent is Provably the Optimal In-Context Learner "
        "with One Layer of Linear Self-Attention",
        "2307.03576",
    ),
    "natan2023": Paper("Bar Natan, Tomer", 2023, "ICL-vs-FT", venue="literature review, Tel-Aviv University"),
    "shen2023": Paper(
        "Shen, Lingfeng and Mishra, Aayush and Khashabi, Daniel",
        2023,
        "Do pretrained Transformers Learn In-Context by Gradient Descent?",
        "2310.08540",
    ),
    "fu2023": Paper(
        "Fu, Deqing and Chen, Tian-Qi and Jia, Robin and Sharan, Vatsal",
        2023,
        "Transformers Learn to Achieve Second-Order Convergence Rates for In-Context Linear Regression",
        "2310.17086",
    ),
    "deutch2023": Paper(
        "Deutch, Gilad and Magar, Nadav and Bar Natan, Tomer and Dar, Guy",
        2023,
        "In-context Learning and Gradient Descent Revisited",
        "2311.07772",
    ),
    "cheng2024": Paper(
        "Cheng, Xiang and Chen, Yuxin and Sra, Suvrit",
        2024,
        "Transformers Implement Functional Gradient Descent to Learn Non-Linear Functions In Context",
        "2312.06528",
    ),
    "vladymyrov2024": Paper(
        "Vladymyrov, Max and von Oswald, Johannes and Sandler, Mark and Ge, Rong",
        2024,
        "Linear Transformers are Versatile In-Context Learners",
        "2402.14180",
    ),
    "ren2024": Paper(
        "Ren, Ruifeng and Liu, Yong",
        2024,
        "Towards Understanding How Transformers Learn In-context Through a Representation Learning Lens",
        "2310.13220",
        told="the slides of their talk",
    ),
    "sun2024": Paper(
        "Sun, Yu and Li, Xinhao and Dalal, Karan and others",
        2024,
        "Learning to (Learn at Test Time): RNNs with Expressive Hidden States",
        "2407.04620",
    ),
    "yang2024": Paper(
        "Yang, Songlin and Wang, Bailin and Zhang, Yu and Shen, Yikang and Kim, Yoon",
        2024,
        "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
        "2406.06484",
    ),
    "longhorn2024": Paper(
        "Liu, Bo and Wang, Rui and Wu, Lemeng and Feng, Yihao and Stone, Peter and Liu, Qiang",
        2024,
        "Longhorn: State Space Models are Amortized Online Learners",
        "2407.14207",
    ),
    "languages2024": Paper(
        "anonymous",
        2024,
        "ICL = GD",
        venue="course project, Mathematics of Generative Models, spring 2024",
        told="its slides",
    ),
    "yang2025": Paper(
        "Yang, Songlin and Kautz, Jan and Hatamizadeh, Ali",
        2025,
        "Gated Delta Networks: Improving Mamba2 with Delta Rule",
        "2412.06464",
    ),
    "wang2025": Paper(
        "Wang, Ke Alexander and Shi, Jiaxin and Fox, Emily B.",
        2025,
        "Test-time regression: a unifying framework for designing sequence models with associative memory",
        "2501.12352",
    ),
    "mesanet2025": Paper(
        "von Oswald, Johannes and Scherrer, Nino and others",
        2025,
        "MesaNet: Sequence Modeling by Locally Optimal Test-Time Training",
        "2506.05233",
    ),
    "dherin2025": Paper(
        "Dherin, Benoit and Munn, Michael and Mazzawi, Hanna and Wunder, Michael and Gonzalvo, Javier",
        2025,
        "Learning without training: The implicit dynamics of in-context learning",
        "2507.16003",
    ),
    "hendel2023": Paper(
        "Hendel, Roee and Geva, Mor and Globerson, Amir", 2023, "In-Context Learning Creates Task Vectors", "2310.15916"
    ),
    "todd2024": Paper(
        "Todd, Eric and Li, Millicent L. and Sen Sharma, Arnab and Mueller, Aaron and Wallace, Byron C. and Bau, David",
        2024,
        "Function Vectors in Large Language Models",
        "2310.15213",
        told="abstract and opening",
    ),
    "liu2024": Paper(
        "Liu, Sheng and Ye, Haotian and Xing, Lei and Zou, James",
        2024,
        "In-context Vectors: Making In Context Learning More Effective and Controllable Through Latent Space Steering",
        "2311.06668",
        told="abstract and opening",
    ),
    "yin2025": Paper(
        "Yin, Kayo and Steinhardt, Jacob",
        2025,
        "Which Attention Heads Matter for In-Context Learning?",
        "2502.14010",
        told="abstract, opening and code",
    ),
    "mazzawi2025": Paper(
        "Mazzawi, Hanna and Dherin, Benoit and Munn, Michael and Wunder, Michael and Gonzalvo, Javier",
        2025,
        "Transmuting prompts into weights",
        "2510.08734",
        told="abstract and opening",
    ),
    "innocenti2025": Paper(
        "Innocenti, Francesco and Achour, El Mehdi",
        2025,
        "A Simple Generalisation of the Implicit Dynamics of In-Context Learning",
        "2512.11255",
        told="abstract, opening and code",
    ),
    "goldwaser2026": Paper(
        "Goldwaser, Adrian and Munn, Michael and Gonzalvo, Javier and Dherin, Benoit",
        2026,
        "Equivalence of Context and Parameter Updates in Modern Transformer Blocks",
        "2511.17864",
        told="abstract and notes",
    ),
    "xie2025": Paper(
        "Xie, Shifeng and Yuan, Rui and Rossi, Simone and Hannagan, Thomas",
        2025,
        "The Initialization Determines Whether In-Context Learning Is Gradient Descent",
        "2512.04268",
    ),
    "liu2026": Paper(
        "Liu, Junchen and Elflein, Sven and Litany, Or and Gojcic, Zan and Li, Ruilong",
        2026,
        "Test-Time Training with KV Binding Is Secretly Linear Attention",
        "2602.21204",
    ),
}
