import { z } from 'zod'

/** Tasks that are answered in the words of an OpenAI-style API: one request, one answer, nothing but text and numbers. */
export const textTasks = ['std/chat-completion', 'std/completion', 'std/embeddings', 'std/rerank', 'std/score'] as const
export type TextTask = (typeof textTasks)[number]

/** Tasks that write down what is said: from a sound, which is a file, to text. */
export const transcriptionTasks = ['std/audio-transcription', 'std/audio-translation'] as const
export type TranscriptionTask = (typeof transcriptionTasks)[number]

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

/** Text into sound: answered with the sound itself, or as a job with a file. */
export const speechTask = 'std/audio-speech' as const
export type SpeechTask = typeof speechTask

/**
 * Pictures in the words of an OpenAI-style API: ways to ask a model that does the tasks below /slug for them. No engine
 * hears of these, and no configuration has to name them.
 */
export const imageTasks = ['std/image-generation', 'std/image-edit'] as const
export type ImageTask = (typeof imageTasks)[number]

/** What a model can be asked to do. The names are the specification's task types. */
export const tasks = [...textTasks, speechTask, ...transcriptionTasks, ...imageTasks, ...generationTasks] as const
export const Task = z.enum(tasks).meta({ id: 'Task', description: 'A task type, such as `std/chat-completion`.' })
export type Task = z.infer<typeof Task>

/** Whether it is answered with text and numbers, by the one walk that all such tasks take. */
export const isTextTask = (task: Task): task is TextTask => textTasks.includes(task as TextTask)

/** Whether it writes down what is said. */
export const isTranscription = (task: Task): task is TranscriptionTask =>
  transcriptionTasks.includes(task as TranscriptionTask)

/** Whether the task is requested below /slug, where each model has a path for it. */
export const isSlugTask = (task: Task): task is GenerationTask => task.startsWith('slug/')

/** Whether it is a generation, asked for below /slug, which an engine does by writing files. */
export const isGeneration = (task: Task): task is GenerationTask => task.startsWith('slug/')

/** Whether it asks for pictures in the words of an OpenAI-style API. */
export const isImageTask = (task: Task): task is ImageTask => imageTasks.includes(task as ImageTask)

/** Whether an engine does it by writing files, asked for below /slug or not: its stored inputs are GenerationInputs. */
export const isPainted = (task: Task): task is GenerationTask | ImageTask => isGeneration(task) || isImageTask(task)

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

/** Whether the result of a job of this task names files, whoever wrote them: `linkedResult` gives them addresses. */
export const makesFiles = (task: Task): boolean => isPainted(task) || task === speechTask
