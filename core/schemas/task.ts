import { z } from 'zod'
import { taskTable } from './task-table.ts'

type Table = typeof taskTable
type OfKind<Kind> = { [Id in keyof Table]: Table[Id]['kind'] extends Kind ? Id : never }[keyof Table]

/** What an engine does for a request. The routes of engines are for operations; a task names those it can use. */
export type Operation = Table[keyof Table]['operations'][number]

/** The first of its operations, of a task that models do. */
type OwnOperation<Row extends Table[keyof Table]> = Row['operations'] extends readonly [infer First, ...unknown[]]
  ? First
  : never

const listOf = <const Kind extends Table[keyof Table]['kind']>(kind: Kind) =>
  Object.entries(taskTable).flatMap(([id, row]) => (row.kind === kind ? [id] : [])) as unknown as readonly [
    OfKind<Kind>,
    ...OfKind<Kind>[],
  ]

/** Tasks whose answer is JSON with text or numbers. */
export const textTasks = listOf('text')
export type TextTask = OfKind<'text'>

/** Tasks that turn an audio file into text. */
export const transcriptionTasks = listOf('transcription')
export type TranscriptionTask = OfKind<'transcription'>

/** Tasks that write image or video files. Each request of them is a job. */
export const generationTasks = listOf('generation')
export type GenerationTask = OfKind<'generation'>

/** The task that turns text into audio. */
export type SpeechTask = OfKind<'speech'>

/**
 * Image tasks of the OpenAI-compatible API. Requests of them become requests of the tasks below /slug, so engines do not
 * implement them and the configuration need not list them.
 */
export type ImageTask = OfKind<'image'>

/** Tasks of workflows that need no model: a thread does them. */
export type StepTask = OfKind<'step'>

/** Tasks of workflows that something outside of infer ends: a person, an event or the clock. */
export type WaitTask = OfKind<'wait'>

/** All tasks. The names are the task types of the specification. */
export const tasks = Object.keys(taskTable) as [keyof Table, ...(keyof Table)[]]
export const Task = z.enum(tasks).meta({
  id: 'Task',
  description:
    'A kind of work that a model does, such as `std/chat-completion`, or a step of workflows without a model.',
})
export type Task = z.infer<typeof Task>

const rowOf = (task: Task): { operations: readonly Operation[]; given?: 'assigned' | 'implied' } => taskTable[task]

/** The tasks that models do. */
export const modelTasks: readonly Task[] = tasks.filter(task => rowOf(task).operations.length > 0)
export const ModelTask = z
  .enum(modelTasks)
  .meta({ id: 'ModelTask', description: 'A kind of work that a model does, such as `std/chat-completion`.' })

/** The operation of an engine that is for this task alone or first. Only of tasks that models do. */
export const operationOf = <Id extends Task>(task: Id): OwnOperation<Table[Id]> =>
  taskTable[task].operations[0] as OwnOperation<Table[Id]>

/** Whether one of these tasks is what the operation is for. */
export const isFor = (own: readonly Task[], ...operations: Operation[]): boolean =>
  own.some(task => operations.includes(rowOf(task).operations[0]!))

/** Returns the operations by which a model with these tasks can do one of them, or could do another. */
export const operationsFor = (task: Task, own: readonly Task[]): Operation[] =>
  rowOf(task).operations.filter((one, at) => at === 0 || rowOf(task).given !== 'assigned' || isFor(own, one))

/** Returns the tasks that a model can be listed with because of what it can do. */
export const tasksBy = (...operations: Operation[]): Task[] =>
  tasks.filter(task => !rowOf(task).given && rowOf(task).operations.some(one => operations.includes(one)))

/** The task behind conversations in every dialect and behind the rewriting of prompts. */
export const conversationTask = 'std/chat-completion' satisfies TextTask

/** Whether the task is requested below /slug, where each model has a path for it. */
export const isSlugTask = (task: Task): task is GenerationTask => taskTable[task].kind === 'generation'

/** The name of such a task in paths: `text-to-image`. */
export const slugTaskName = (task: GenerationTask): string => task.slice(task.indexOf('/') + 1)

/** Whether the task writes a video file. */
export const isVideoTask = (task: Task): boolean => isSlugTask(task) && taskTable[task].makes === 'video'

/** A kind of file that a generation task takes. */
export type InputMedium = (typeof taskTable)[GenerationTask]['media'][number]

/** Returns the files without which a generation task cannot run. */
export const mediaFor = (task: GenerationTask): readonly InputMedium[] => taskTable[task].media

/** Returns the task that makes an image or a video of exactly these files. */
export const generationTaskOf = (makes: 'image' | 'video', media: readonly InputMedium[]): GenerationTask =>
  generationTasks.find(
    task =>
      taskTable[task].makes === makes &&
      mediaFor(task).length === media.length &&
      mediaFor(task).every(one => media.includes(one)),
  )!

/** Tasks that no engine implements. A model has such a task if it has any of the listed tasks. */
export const impliedBy: Partial<Record<Task, readonly Task[]>> = Object.fromEntries(
  tasks.filter(task => rowOf(task).given === 'implied').map(task => [task, tasksBy(...rowOf(task).operations)]),
)

/** Returns the tasks of an engine and the tasks that they imply. */
export function withImplied(own: readonly Task[]): Task[] {
  const engineTasks = own.filter(task => impliedBy[task] === undefined)
  return [...engineTasks, ...tasks.filter(task => impliedBy[task]?.some(one => engineTasks.includes(one)))]
}
