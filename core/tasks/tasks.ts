import { z } from 'zod'

/** What a model can be asked to do. The names are the specification's task types. */
export const tasks = ['std/chat-completion', 'std/completion', 'std/embeddings', 'std/rerank', 'std/score'] as const
export const Task = z.enum(tasks).meta({ id: 'Task', description: 'A task type, such as `std/chat-completion`.' })
export type Task = z.infer<typeof Task>
