import { type TaskRow, taskTable } from '../../../../core/schemas/task-table.ts'
import type { Schema } from '../api/schema.ts'

/*
 * What the console says by colour: kinds of data and models. The values for light and dark are in styles.css. A colour is
 * never alone: an icon or a word says the same.
 */

/** What a task makes, a file is, or a port carries. */
export type Kind = 'text' | 'image' | 'video' | 'audio'

/** The classes of the text of a kind, of the left edge of a card, and of a port, which the graph library colours too. */
export const kindColours: Readonly<Record<Kind, { text: string; edge: string; port: string }>> = {
  text: { text: 'text-kind-text', edge: 'border-l-4 border-l-kind-text', port: '!border-kind-text' },
  image: { text: 'text-kind-image', edge: 'border-l-4 border-l-kind-image', port: '!border-kind-image' },
  video: { text: 'text-kind-video', edge: 'border-l-4 border-l-kind-video', port: '!border-kind-video' },
  audio: { text: 'text-kind-audio', edge: 'border-l-4 border-l-kind-audio', port: '!border-kind-audio' },
}

/** Whether there is a task with this id: people may type any in the YAML. */
export const isTask = (id: string): id is Schema<'Task'> => Object.hasOwn(taskTable, id)

/** Returns what a task makes; undefined for steps that pass on what they get, and for waits. */
export function kindOfTask(task: Schema<'Task'>): Kind | undefined {
  const { kind, makes }: TaskRow = taskTable[task]
  if (kind === 'step' || kind === 'wait') return undefined
  if (kind === 'transcription') return 'text'
  return kind === 'speech' ? 'audio' : kind === 'generation' ? makes : kind
}

/** The left edge of a card of a task. */
export const taskEdge = (task: Schema<'Task'>): string => {
  const kind = kindOfTask(task)
  return kind === undefined ? '' : kindColours[kind].edge
}

/** Backgrounds of models. */
export const modelColours = [
  'bg-model-1',
  'bg-model-2',
  'bg-model-3',
  'bg-model-4',
  'bg-model-5',
  'bg-model-6',
  'bg-model-7',
  'bg-model-8',
] as const

/** With this seed each of the included models has a colour of its own. */
const seed = 131

/** Returns the background of a model: the same on every page and after every restart, as it depends on the id alone. */
export function modelColour(id: string): string {
  let hash = seed
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193)
  return modelColours[((hash >>> 16) ^ hash) & (modelColours.length - 1)]!
}
