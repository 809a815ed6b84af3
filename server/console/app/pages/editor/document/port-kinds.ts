import { everyItem } from '../../../../../../core/workflows/references.ts'
import { isTask, type Kind, kindOfTask } from '../../../components/colours.ts'
import { editorText } from '../../../text/editor.ts'
import { type FieldKind, schemaAt, shapeOf, type TaskFacts } from './schema.ts'
import type { Path } from './workflow-document.ts'

/** What a port carries, as people see it: `image`, `video` and `audio` are addresses of such files. */
export type PortKind = Kind | 'file' | 'number' | 'boolean' | 'list' | 'object' | 'any'

/** What an input takes. */
export interface Taken {
  kind: PortKind
  /** Every kind of JSON value that its schema allows; empty: any. */
  values: readonly FieldKind[]
}

const media: readonly PortKind[] = ['image', 'video', 'audio', 'file']
export const isMedium = (kind: PortKind): boolean => media.includes(kind)

const kindOfField: Readonly<Record<FieldKind, PortKind>> = {
  text: 'text',
  choice: 'text',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
  list: 'list',
  object: 'object',
  any: 'any',
}

/** What a field for a file takes, by its name; else what the task is about. */
function mediumOf(name: string, category: string): PortKind {
  const found = (['image', 'mask', 'video', 'audio', 'speaker'] as const).find(word => name.includes(word))
  if (found === 'mask') return 'image'
  if (found === 'speaker') return 'audio'
  return found ?? (category === 'audio' || category === 'image' || category === 'video' ? category : 'file')
}

type InputFacts = Pick<TaskFacts, 'input_schema' | 'media_fields' | 'category'>

/** By the schema of a task and the path as text: hundreds of nodes may have the same. */
const taken = new WeakMap<object, Map<string, Taken>>()

/** What an input of a task takes; anything, if the task is not known. */
export function takenBy(task: InputFacts | undefined, path: Path): Taken {
  if (!task) return { kind: 'any', values: [] }
  let known = taken.get(task.input_schema)
  if (!known) taken.set(task.input_schema, (known = new Map()))
  const key = JSON.stringify(path)
  let found = known.get(key)
  if (!found) known.set(key, (found = readTaken(task, path)))
  return found
}

function readTaken({ input_schema: schema, media_fields: fields, category }: InputFacts, path: Path): Taken {
  const [top] = path
  const found = schemaAt(schema, schema, path)
  const values = found ? shapeOf(found, schema).kinds : []
  if (typeof top === 'string' && fields.includes(top)) return { kind: mediumOf(top, category), values }
  // A message takes text, whatever else its schema allows.
  if (top === 'messages' && path.length > 1) return { kind: 'text', values: ['text'] }
  const first = values.includes('text') ? 'text' : values[0]
  return { kind: first === undefined ? 'any' : kindOfField[first], values }
}

/** What a value of a result is: the address of what the task makes, or a value of this kind. */
export function kindOfOutput(task: string, path: Path, field: string): PortKind {
  // A value of every item is a list of values.
  if (field === 'list' || path.includes(everyItem)) return 'list'
  const names = path.filter(step => typeof step === 'string')
  const name = names.at(-1) ?? ''
  const within = names.join('.')
  if (/(^|_)url$/.test(name) || /^(images?|videos?|audio)$/.test(name)) {
    const found = (['image', 'video', 'audio'] as const).find(kind => within.includes(kind))
    return found ?? ((isTask(task) ? kindOfTask(task) : undefined) || 'file')
  }
  return kindOfField[field as FieldKind] ?? 'any'
}

/** What a parameter of the workflow is, by its type. */
export const kindOfParameter = (type: string | undefined): PortKind =>
  ({
    string: 'text' as const,
    number: 'number' as const,
    integer: 'number' as const,
    boolean: 'boolean' as const,
    array: 'list' as const,
    object: 'object' as const,
    image: 'image' as const,
    video: 'video' as const,
    audio: 'audio' as const,
    file: 'file' as const,
  })[type ?? ''] ?? 'any'

/** How well a value fits an input: as it is meant, not as it is meant but allowed, or refused by the server. */
export type Fit = 'fits' | 'possible' | 'refused'

/** Whether an output fits an input. `isText`: the input has words already, to which the value is appended. */
export function fitOf(given: PortKind, { kind, values }: Taken, isText = false): Fit {
  if (given === 'any' || kind === 'any') return kind === 'any' && values.length === 0 ? 'fits' : 'possible'
  if (given === kind) return 'fits'
  if (isMedium(kind)) {
    if (given === 'file' || (kind === 'file' && isMedium(given))) return 'fits'
    // A text may be an address; a list may have addresses.
    return given === 'text' || (given === 'list' && values.includes('list')) ? 'possible' : 'refused'
  }
  if (isMedium(given)) return values.includes('text') || values.includes('choice') ? 'possible' : 'refused'
  if (isText && kind === 'text') return given === 'number' || given === 'boolean' ? 'fits' : 'possible'
  return values.some(value => kindOfField[value] === given) ? 'fits' : 'refused'
}

/** Why a value cannot be an input, for people. */
export const refusalOf = (output: { name: string; kind: PortKind }, input: { name: string; kind: PortKind }): string =>
  editorText.refused(input.name, editorText.portKinds[input.kind], output.name, editorText.portKinds[output.kind])
