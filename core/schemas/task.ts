import { z } from 'zod'

/** Tasks whose answer is JSON with text or numbers. */
export const textTasks = [
  'std/chat-completion',
  'std/completion',
  'std/embeddings',
  'std/rerank',
  'std/score',
  'std/moderation',
] as const
export type TextTask = (typeof textTasks)[number]

/** Tasks that turn an audio file into text. */
export const transcriptionTasks = ['std/audio-transcription', 'std/audio-translation'] as const
export type TranscriptionTask = (typeof transcriptionTasks)[number]

/** Tasks that write image or video files. Each request of them is a job. */
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

/** The task that turns text into audio. */
const speechTasks = ['std/audio-speech'] as const
export type SpeechTask = (typeof speechTasks)[number]

/**
 * Image tasks of the OpenAI-compatible API. Requests of them become requests of the tasks below /slug, so engines do not
 * implement them and the configuration need not list them.
 */
const imageTasks = ['std/image-generation', 'std/image-edit'] as const
export type ImageTask = (typeof imageTasks)[number]

/** All tasks. The names are the task types of the specification. */
export const tasks = [...textTasks, ...speechTasks, ...transcriptionTasks, ...imageTasks, ...generationTasks] as const
export const Task = z
  .enum(tasks)
  .meta({ id: 'Task', description: 'A kind of work that a model does, such as `std/chat-completion`.' })
export type Task = z.infer<typeof Task>

/** The task of models that rewrite prompts. */
export const rewritingTask = 'std/chat-completion' satisfies TextTask

/** Whether the task is requested below /slug, where each model has a path for it. */
export const isSlugTask = (task: Task): task is GenerationTask => task.startsWith('slug/')

const videoTasks: ReadonlySet<Task> = new Set<GenerationTask>([
  'slug/text-to-video',
  'slug/image-to-video',
  'slug/speech-to-video',
  'slug/video-interpolation',
])

/** Whether the task writes a video file. */
export const isVideoTask = (task: Task): boolean => videoTasks.has(task)

/** Tasks that no engine implements. A model has such a task if it has any of the listed tasks. */
export const impliedBy: Partial<Record<Task, readonly Task[]>> = {
  'std/image-generation': ['slug/text-to-image'],
  'std/image-edit': ['slug/image-to-image', 'slug/inpainting'],
}

/** Returns the tasks of an engine and the tasks that they imply. */
export function withImplied(own: readonly Task[]): Task[] {
  const engineTasks = own.filter(task => impliedBy[task] === undefined)
  return [...engineTasks, ...tasks.filter(task => impliedBy[task]?.some(one => engineTasks.includes(one)))]
}
