import { z } from 'zod'

/** Tasks that are answered in the words of an OpenAI-style API: one request, one answer, nothing but text and numbers. */
export const textTasks = ['std/chat-completion', 'std/completion', 'std/embeddings', 'std/rerank', 'std/score'] as const
export type TextTask = (typeof textTasks)[number]

/** Tasks that make pictures and videos: always a job, its inputs and outputs are files. */
export const generationTasks = [
  'slug/text-to-image',
  'slug/image-to-image',
  'slug/inpainting',
  'slug/text-to-video',
  'slug/image-to-video',
  'slug/speech-to-video',
  'slug/video-interpolation',
] as const
export type GenerationTask = (typeof generationTasks)[number]

/** What a model can be asked to do. The names are the specification's task types. */
export const tasks = [...textTasks, ...generationTasks] as const
export const Task = z.enum(tasks).meta({ id: 'Task', description: 'A task type, such as `std/chat-completion`.' })
export type Task = z.infer<typeof Task>

/** Whether a task makes files. */
export const isGeneration = (task: Task): task is GenerationTask => task.startsWith('slug/')
