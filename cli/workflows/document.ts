import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { parse, parseDocument } from 'yaml'
import type { z } from 'zod'
import { positionIn } from '../../core/models/config-fault.ts'
import { nearest } from '../../core/nearest.ts'
import { failureOf } from '../../core/schemas/issues.ts'
import { WorkflowFields } from '../../core/workflows/workflow-fields.ts'
import { CommandFailure, exitCodes } from '../exit-codes.ts'
import { unreadable } from '../unreadable.ts'

/** A workflow as a file says it: what the API takes, with a name that may be missing. */
const WorkflowDocument = WorkflowFields.partial({ name: true })
export type WorkflowDocument = z.output<typeof WorkflowDocument> & { name: string }

/** Line and column of a member of a document, counted from 1. The path is `dag.nodes.write.inputs.messages[0]` in parts. */
export type PositionOf = (path: readonly (string | number)[]) => { line: number; column: number } | undefined

/** More than any definition that a server takes. Bytes. */
const longest = 16 << 20

/** Whether an argument names a file and not a workflow of the server. */
export const isFile = (text: string): boolean => /\.(json|ya?ml)$/i.test(text) || existsSync(text)

/**
 * Reads a workflow from JSON or YAML: a whole one, or a graph alone (`nodes`, `edges`), which is named after the file.
 * Throws with exit code 74 when it cannot be read, with 65 and the place when it is no workflow.
 */
export function readDocument(path: string): { document: WorkflowDocument; positionOf: PositionOf } {
  const text = readText(path)
  const written = parsed(path, text)
  if (!isObject(written) || !('dag' in written || 'nodes' in written))
    throw damaged(`${path} is no workflow. Write an object with the graph as 'dag', or 'nodes' and 'edges' alone.`)
  const isWhole = 'dag' in written
  const positionOf = openPositions(text, isWhole)
  const whole = isWhole ? written : wholeOf(written)
  const read = WorkflowDocument.safeParse(whole)
  if (!read.success) {
    const { code, message, param = '', details } = failureOf(read.error, whole, WorkflowDocument)
    const found = (details ?? [{ code, message, path: param }]).map(one => {
      const position = positionOf(pathParts(one.path))
      return { ...one, path: position ? `${path}:${position.line}:${position.column}` : path }
    })
    if (!details) throw damaged(`${found[0]!.path}: ${message}`)
    throw damaged(`${path} is no workflow: ${found.length} things are wrong.`, { details: found })
  }
  return { document: { ...read.data, name: read.data.name ?? basename(path, extname(path)) }, positionOf }
}

/** Turns a graph alone, which may have further fields of a workflow beside it, into a workflow. */
function wholeOf(written: Record<string, unknown>): Record<string, unknown> {
  // A misspelt name goes where the nearest name belongs, so that its message can suggest that.
  const isGraph = ([name]: [string, unknown]) => nearest(name.slice(0, 64), ['nodes', 'edges']) !== undefined
  const members = Object.entries(written)
  return {
    ...Object.fromEntries(members.filter(member => !isGraph(member))),
    dag: Object.fromEntries(members.filter(isGraph)),
  }
}

/** Splits `dag.nodes.a.outputs[0]` into its parts. */
export const pathParts = (path: string): (string | number)[] =>
  [...path.matchAll(/\[(\d+)\]|([^.[\]]+)/g)].map(([, index, name]) => (index === undefined ? name! : Number(index)))

function openPositions(text: string, isWhole: boolean): PositionOf {
  let document: ReturnType<typeof parseDocument> | undefined
  return path => {
    // JSON is YAML, besides tabs in places where this file needs no position.
    document ??= parseDocument(text, { logLevel: 'silent' })
    return positionIn(document, text, isWhole || path[0] !== 'dag' ? path : path.slice(1))
  }
}

/** A file of parameters: one object, JSON or YAML. */
export function readParameters(path: string): Record<string, unknown> {
  const written = parsed(path, readText(path))
  if (!isObject(written)) throw damaged(`${path} holds no parameters. Write one object: names and their values.`)
  return written
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

const damaged = (message: string, more: ConstructorParameters<typeof CommandFailure>[3] = {}) =>
  new CommandFailure(exitCodes.data, 'invalid_value', message, more)

function readText(path: string): string {
  try {
    if (statSync(path).size > longest) throw new Error(`it is longer than ${longest >> 20} MiB`)
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw unreadable(path, cause)
  }
}

function parsed(path: string, text: string): unknown {
  const isJson = extname(path).toLowerCase() === '.json'
  try {
    return isJson ? JSON.parse(text) : (parse(text, { logLevel: 'error' }) as unknown)
  } catch (cause) {
    const [why = ''] = (cause as Error).message.split('\n')
    throw damaged(`${path} is no ${isJson ? 'JSON' : 'YAML'}: ${why.replace(/[.:]$/, '')}.`, { cause })
  }
}
