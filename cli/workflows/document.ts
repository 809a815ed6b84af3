import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { Dag, Parameter } from '../../core/dag/definition.ts'
import { failureOf } from '../../core/schemas/issues.ts'
import { CommandFailure, exitCodes } from '../exit-codes.ts'
import { unreadable } from '../unreadable.ts'

/** A workflow as a file says it. What else stands in it goes to the server as it is. */
const WorkflowDocument = z.looseObject({
  name: z.string().trim().min(1).max(256).optional(),
  parameters: z.record(z.string().max(64), Parameter).nullish(),
  dag: Dag,
})
export type WorkflowDocument = z.output<typeof WorkflowDocument> & { name: string }

/** More than any definition that a server takes. Bytes. */
const longest = 16 << 20

/** Whether an argument names a file and not a workflow of the server. */
export const isFile = (text: string): boolean => /\.(json|ya?ml)$/i.test(text) || existsSync(text)

/**
 * Reads a workflow from JSON or YAML: a whole one, or a graph alone (`nodes`, `edges`), which is named after the file.
 * Throws with exit code 74 when it cannot be read, with 65 and the place when it is no workflow.
 */
export function readDocument(path: string): WorkflowDocument {
  const written = parsed(path, readText(path))
  if (!isObject(written) || !('dag' in written || 'nodes' in written))
    throw damaged(`${path} is no workflow. Write an object with the graph as 'dag', or 'nodes' and 'edges' alone.`)
  const whole = 'dag' in written ? written : { dag: written }
  const read = WorkflowDocument.safeParse(whole)
  if (!read.success) {
    const { message, details } = failureOf(read.error, whole)
    throw damaged(`${path} is no workflow. ${message}`, details ? { details } : {})
  }
  return { ...read.data, name: read.data.name ?? basename(path, extname(path)) }
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
