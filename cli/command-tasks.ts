import type { Task } from '../core/schemas/task.ts'

/** The task that a model must have for a command to use it. */
export const commandTasks = {
  run: 'std/chat-completion',
  chat: 'std/chat-completion',
  embed: 'std/embeddings',
  rerank: 'std/rerank',
} as const satisfies Record<string, Task>
