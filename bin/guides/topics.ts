/** A guide as the lists show it. Its text is `server/docs/guides/<topic>.md`. */
interface Topic {
  /** What stands in the URL and behind `infer help`. No command has this name. */
  topic: string
  /** One line of at most 56 characters. */
  summary: string
}

/** Every guide, in the order in which the lists show them. */
export const topicGroups: readonly { group: string; topics: readonly Topic[] }[] = [
  {
    group: 'Start',
    topics: [
      { topic: 'getting-started', summary: 'from a checkout to the first answers, in ten minutes' },
      { topic: 'gpu-box', summary: 'driver, first model, vLLM, a chat page, an agent' },
      { topic: 'installation', summary: 'install, upgrade and uninstall' },
      { topic: 'web-console', summary: 'sign in and work in the browser' },
      { topic: 'models', summary: 'the catalog; add, test and remove models' },
      { topic: 'model-names', summary: 'aliases, profiles, LoRA adapters and fallbacks' },
    ],
  },
  {
    group: 'Use',
    topics: [
      { topic: 'chat-and-tools', summary: 'chat, streams, tools, JSON answers' },
      { topic: 'conversations', summary: 'the chat page: files, folders, links, voice' },
      { topic: 'embeddings', summary: 'texts as vectors, documents by relevance' },
      { topic: 'images-and-video', summary: 'generate and edit images and videos' },
      { topic: 'speech', summary: 'synthesize and transcribe speech' },
      { topic: 'realtime', summary: 'transcribe while somebody speaks, over a WebSocket' },
      { topic: 'files-and-batches', summary: 'upload files, fetch results, many requests' },
      { topic: 'batches', summary: 'files of requests that run in the background' },
      { topic: 'jobs', summary: 'work that survives restarts: submit, follow, retry' },
      { topic: 'workflows', summary: 'several tasks as one: a tutorial and the reference' },
      { topic: 'workflow-branches', summary: 'nodes that run only if, and what comes after them' },
      { topic: 'workflow-lists', summary: 'a node that runs once for each item of a list' },
      { topic: 'workflow-steps', summary: 'nodes without a model: split, extract, select' },
      { topic: 'workflow-nesting', summary: 'how many run at once, workflows that run others' },
      { topic: 'workflow-runs', summary: 'run a part, pin results, change inputs, estimate' },
      { topic: 'workflow-approvals', summary: 'wait for a person, an event or a time' },
      { topic: 'coding-agents', summary: 'Claude Code, Codex, opencode and other agents' },
      { topic: 'mcp', summary: 'models and workflows as tools of agents and editors' },
      { topic: 'webhooks', summary: 'events sent to your URL: register, verify, repeat' },
    ],
  },
  {
    group: 'Operate',
    topics: [
      { topic: 'engines', summary: 'vLLM, llama-server, SGLang, your own program' },
      { topic: 'engine-releases', summary: 'install and update llama-server and sd-server' },
      { topic: 'image-engines', summary: 'diffusers, sd-server, vLLM-Omni: your own image models' },
      { topic: 'comfyui', summary: 'ComfyUI graphs as image and video models' },
      { topic: 'gpus-and-memory', summary: 'what is loaded where, and why' },
      { topic: 'sharing-a-card', summary: 'what swaps keep, and GPUs for other programs' },
      { topic: 'pools', summary: 'engines on other machines: clusters, a box by ssh' },
      { topic: 'slurm', summary: 'engines as jobs of a cluster: setup, keys, failures' },
      { topic: 'on-kubernetes', summary: 'engines as pods: setup, images, keys, failures' },
      { topic: 'second-machine', summary: 'models of another machine, engines there by ssh' },
      { topic: 'spill-over', summary: 'what goes elsewhere, in a budget, and what never' },
      { topic: 'organizations', summary: 'organizations, tokens, limits and spend' },
      { topic: 'limits', summary: 'plans, and the limits of organizations and tokens' },
      { topic: 'usage-and-spend', summary: 'what was used, by whom, and what it cost' },
      { topic: 'prices', summary: 'what is measured, prices, spend limits' },
      { topic: 'operating', summary: 'systemd, TLS, proxies, backup, upgrade, sizing' },
      { topic: 'upgrades', summary: 'a new version takes over without a failed request' },
      { topic: 'monitoring', summary: 'metrics, alerts and a dashboard' },
      { topic: 'security', summary: 'what is promised, what is not, reporting' },
      { topic: 'troubleshooting', summary: 'by symptom: what you see, why, what to do' },
    ],
  },
  {
    group: 'Coming from',
    topics: [
      { topic: 'other-clients', summary: 'clients of Anthropic, Cohere, Voyage, Groq and others' },
      { topic: 'coming-from-openai', summary: 'what is the same, what differs' },
      { topic: 'coming-from-ollama', summary: 'commands and settings side by side' },
      { topic: 'coming-from-litellm', summary: 'keys, budgets and models' },
      { topic: 'coming-from-fal', summary: 'clients, queue and files' },
    ],
  },
]
