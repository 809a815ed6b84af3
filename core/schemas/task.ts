import { z } from 'zod'

/** Tasks that are answered with text and numbers, in one answer. */
export const textTasks = ['std/chat-completion', 'std/completion', 'std/embeddings', 'std/rerank', 'std/score'] as const
export type TextTask = (typeof textTasks)[number]

/** Tasks that turn audio, which is a file, into text. */
export const transcriptionTasks = ['std/audio-transcription', 'std/audio-translation'] as const
export type TranscriptionTask = (typeof transcriptionTasks)[number]

/** Tasks that write image or video files: always a job. */
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
 * Image tasks of the OpenAI-compatible API: other requests for what the tasks below /slug do. No engine is asked for them,
 * and no configuration has to name them.
 */
export const imageTasks = ['std/image-generation', 'std/image-edit'] as const
export type ImageTask = (typeof imageTasks)[number]

/** What a model can be asked to do. The names are the specification's task types. */
export const tasks = [...textTasks, ...speechTasks, ...transcriptionTasks, ...imageTasks, ...generationTasks] as const
export const Task = z
  .enum(tasks)
  .meta({ id: 'Task', description: 'A kind of work that a model does, such as `std/chat-completion`.' })
export type Task = z.infer<typeof Task>

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

/** Tasks that no engine is asked for: a model does one when it does any of the tasks beside it. */
export const impliedBy: Partial<Record<Task, readonly Task[]>> = {
  'std/image-generation': ['slug/text-to-image'],
  'std/image-edit': ['slug/image-to-image', 'slug/inpainting'],
}

/** Returns the tasks of a model whose engine does these: the same, and those that they imply. */
export function withImplied(own: readonly Task[]): Task[] {
  const engineTasks = own.filter(task => impliedBy[task] === undefined)
  return [...engineTasks, ...tasks.filter(task => impliedBy[task]?.some(one => engineTasks.includes(one)))]
}
