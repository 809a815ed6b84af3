import type { Task } from '../../core/schemas/task.ts'

/** The task that a model must support for each command. */
export const commandTasks = {
  run: 'std/chat-completion',
  chat: 'std/chat-completion',
  embed: 'std/embeddings',
  rerank: 'std/rerank',
  image: 'std/image-generation',
  speak: 'std/audio-speech',
  transcribe: 'std/audio-transcription',
} as const satisfies Record<string, Task>
