import { type Document, isMap, parseDocument } from 'yaml'
import { editorText } from '../../../text/editor.ts'

/** Names of members and positions in lists, from the root of the document. */
export type Path = readonly (string | number)[]

export interface Parameter {
  type: string
  required?: boolean
  default?: unknown
  description?: string
  enum?: unknown[]
  minimum?: number
  maximum?: number
}

export interface WorkflowNode {
  id: string
  name?: string
  task: string
  model?: string
  inputs: Record<string, unknown>
  outputs: string[]
  /** What is no number is shown, to be corrected. */
  timeout?: number | string
  budget?: number | string
  retries?: { max?: number; backoff_ms?: number }
  on_error: string
  cache?: string
  when?: unknown
  join?: string
  defaults?: Record<string, unknown>
  /** A reference to the list for whose items the node runs, or the list itself. */
  for_each?: unknown
  max_parallel?: number | string
  max_items?: number | string
  on_item_error?: string
  /** What people should know. */
  note?: string
  /** The result that it has without running. */
  pin?: unknown
  position?: { x: number; y: number }
}

/** A rectangle behind the nodes: a group of those that lie in it, or a note. */
export interface Frame {
  /** Its place in the list of the document. */
  index: number
  text: string
  position: { x: number; y: number }
  size: { width: number; height: number }
}

/** What a document says, as far as it can be understood: an unfinished one is shown too. */
export interface Workflow {
  name: string
  description: string
  region: string
  timeout?: number | string
  budget?: number | string
  on_failure: string
  tags: string[]
  concurrency?: { limit?: number | string; when_reached?: string }
  parameters: { name: string; parameter: Parameter }[]
  nodes: WorkflowNode[]
  edges: { from: string; to: string }[]
  frames: Frame[]
}

/** A fault of the text: it is not YAML, or not a mapping. */
interface TextFault {
  message: string
  /** From 1. */
  line: number
}

export interface Parsed {
  document: Document
  faults: TextFault[]
  /** The value of the document, to be sent; undefined if the text has faults. */
  value: Record<string, unknown> | undefined
  workflow: Workflow
}

/** Reads the text of a workflow. Never throws: faults are part of what it returns. */
export const parseWorkflow = (text: string): Parsed => readDocument(parseDocument(text, { prettyErrors: false }), text)

/** Reads a document, which may have been edited since it was parsed: reading is much cheaper than parsing. */
export function readDocument(document: Document, text: string): Parsed {
  const faults = document.errors.map(({ message, pos }) => ({ message: sentence(message), line: lineAt(text, pos[0]) }))
  if (faults.length === 0 && !isMap(document.contents)) faults.push({ message: editorText.noMapping, line: 1 })
  let value: unknown
  try {
    value = faults.length === 0 ? document.toJS() : undefined
    // An alias of what it is in has no end, and cannot be sent.
    if (text.includes('*')) JSON.stringify(value)
  } catch (thrown) {
    const message = thrown instanceof TypeError ? editorText.endless : sentence((thrown as Error).message)
    faults.push({ message, line: 1 })
  }
  const known = isRecord(value) ? value : undefined
  return { document, faults, value: known, workflow: workflowOf(known ?? {}) }
}

const sentence = (text: string): string => (text.endsWith('.') ? text : `${text}.`)

/** The number of the line with this character, from 1. */
const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length

/** Returns the text of a document with edits. Comments and blank lines stay where they are; no line is folded. */
export function documentText(document: Document, before: string): string {
  const indentSeq = !/^( *)[^\s#-][^\n]*:\n\1- /m.test(before)
  return document.toString({ lineWidth: 0, indentSeq })
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
const recordAt = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {})
const textAt = (value: unknown): string => (typeof value === 'string' ? value : '')
const listAt = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const textsAt = (value: unknown): string[] => listAt(value).filter(one => typeof one === 'string')
const numberOrText = (value: unknown): number | string | undefined =>
  typeof value === 'number' || typeof value === 'string' ? value : undefined

/** What a definition says, as far as it can be understood. */
export function workflowOf(value: Record<string, unknown>): Workflow {
  const dag = recordAt(value.dag)
  return {
    name: textAt(value.name),
    description: textAt(value.description),
    region: textAt(value.region) || 'Global',
    timeout: numberOrText(value.timeout),
    budget: numberOrText(value.budget),
    on_failure: textAt(value.on_failure) || 'fail_fast',
    tags: textsAt(value.tags),
    concurrency: isRecord(value.concurrency) ? concurrencyOf(value.concurrency) : undefined,
    parameters: Object.entries(recordAt(value.parameters)).map(([name, parameter]) => ({
      name,
      parameter: parameterOf(recordAt(parameter)),
    })),
    nodes: Object.entries(recordAt(dag.nodes)).map(([id, node]) => nodeOf(id, recordAt(node))),
    edges: listAt(dag.edges).flatMap(edge => {
      const { from, to } = recordAt(edge)
      return typeof from === 'string' && typeof to === 'string' ? [{ from, to }] : []
    }),
    frames: listAt(dag.frames).flatMap((frame, index) => frameOf(index, recordAt(frame))),
  }
}

function frameOf(index: number, frame: Record<string, unknown>): Frame[] {
  const [{ x, y }, { width, height }] = [recordAt(frame.position), recordAt(frame.size)]
  const isPlaced = [x, y, width, height].every(value => typeof value === 'number')
  const place = { position: { x, y }, size: { width, height } } as Pick<Frame, 'position' | 'size'>
  return isPlaced ? [{ index, text: textAt(frame.text), ...place }] : []
}

const concurrencyOf = ({ limit, when_reached }: Record<string, unknown>) => ({
  limit: numberOrText(limit),
  when_reached: textAt(when_reached) || undefined,
})

const parameterOf = ({ type, description, enum: values, ...more }: Record<string, unknown>): Parameter => ({
  ...more,
  description: textAt(description) || undefined,
  enum: Array.isArray(values) ? values : undefined,
  type: textAt(type) || 'string',
})

function nodeOf(id: string, node: Record<string, unknown>): WorkflowNode {
  const { x, y } = recordAt(node.position)
  return {
    id,
    name: textAt(node.name) || undefined,
    task: textAt(node.task),
    model: textAt(node.model_id) || undefined,
    inputs: recordAt(node.inputs),
    outputs: textsAt(node.outputs),
    timeout: numberOrText(node.timeout),
    budget: numberOrText(node.budget),
    retries: isRecord(node.retries) ? node.retries : undefined,
    on_error: textAt(node.on_error) || 'fail',
    cache: textAt(node.cache) || undefined,
    when: node.when,
    join: textAt(node.join) || undefined,
    defaults: isRecord(node.defaults) ? node.defaults : undefined,
    for_each: node.for_each ?? undefined,
    max_parallel: numberOrText(node.max_parallel),
    max_items: numberOrText(node.max_items),
    on_item_error: textAt(node.on_item_error) || undefined,
    note: textAt(node.note) || undefined,
    pin: node.pin ?? undefined,
    position: typeof x === 'number' && typeof y === 'number' ? { x, y } : undefined,
  }
}
