/** Headings of the reference with their descriptions. */
export const tags: Readonly<Record<string, string>> = {
  Text: 'OpenAI-compatible API for text: chat completions, completions, embeddings, rerank and scores.',
  Audio: 'OpenAI-compatible API for audio: text to speech, transcription and translation.',
  Models: 'Models, their state, and loading and unloading them.',
  Images: 'OpenAI-compatible API for images.',
  Jobs: 'Background jobs. A job that was accepted survives crashes and restarts.',
  Events: 'Server-sent events of jobs and executions.',
  Generation: 'Images and videos by the slug of a model: queue, status, result.',
  fal: "fal-compatible API: fal's clients work with this server as their `proxyUrl`.",
  Workflows: 'Stored workflows: graphs of tasks that use the results of each other.',
  'Workflow executions': 'Runs of workflows.',
  Library: 'Videos that jobs of the organization created.',
  'Stored files':
    'OpenAI-compatible API for files: upload, list, download and delete them, and use them in requests by their id.',
  Files: 'Files by signed addresses. The signature is the right to read or to send: no token is needed.',
  'Organizations and tokens': 'API tokens and what they allow.',
  Webhooks: 'Signed messages about events of jobs and executions, sent to URLs of the organization.',
  System: 'Health, metrics, state of the machine, and the description of this API.',
}
