import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { parseDocument } from 'yaml'
import type { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import { isObject } from '../../core/json.ts'
import { positionIn } from '../../core/models/config-fault.ts'
import { nearest } from '../../core/nearest.ts'
import { readYaml } from '../../core/read-yaml.ts'
import { failureOfIssues } from '../../core/schemas/issues.ts'
import type { Diagnostic } from '../../core/workflows/diagnostics.ts'
import { WorkflowFields } from '../../core/workflows/workflow-fields.ts'
import { CommandFailure, exitCodes, unreadable } from '../terminal/exit-codes.ts'

/** A workflow in a file: the fields of the API, with an optional name. */
const WorkflowDocument = WorkflowFields.partial({ name: true })
export type WorkflowDocument = z.output<typeof WorkflowDocument> & { name: string }

/** Returns line and column of a member, counted from 1. The path is `dag.nodes.write.inputs.messages[0]` in parts. */
type PositionOf = (path: readonly (string | number)[]) => { line: number; column: number } | undefined

/** Maximum bytes of a file, more than the server's limit for a definition. */
const maxFileBytes = 16 << 20

/** Whether an argument names a file rather than a workflow on the server. */
export const isFile = (text: string): boolean => /\.(json|ya?ml)$/i.test(text) || existsSync(text)

/**
 * Reads a workflow from JSON or YAML: a complete one, or only a graph (`nodes`, `edges`), which is named after the
 * file. Throws with exit code 74 when the file cannot be read, and with 65 and the position when it is not a workflow.
 */
export function readWorkflowFile(path: string): { document: WorkflowDocument; positionOf: PositionOf } {
  const text = readText(path)
  const content = parsed(path, text)
  if (!isObject(content) || !('dag' in content || 'nodes' in content))
    throw damaged(`${path} is not a workflow. Write an object with the graph as 'dag', or only 'nodes' and 'edges'.`)
  const isWhole = 'dag' in content
  const positionOf = openPositions(text, isWhole)
  const whole = isWhole ? content : wholeOf(content)
  const read = WorkflowDocument.safeParse(whole)
  if (!read.success) {
    const { code, message, param = '', details } = failureOfIssues(read.error, whole, WorkflowDocument)
    const found = (details ?? [{ code, message, path: param }]).map(one => {
      const position = positionOf(pathParts(one.path))
      return { ...one, path: position ? `${path}:${position.line}:${position.column}` : path }
    })
    if (!details) throw damaged(`${found[0]!.path}: ${message}`)
    throw damaged(`${path} is not a workflow: ${found.length} errors.`, { details: found })
  }
  return { document: { ...read.data, name: read.data.name ?? basename(path, extname(path)) }, positionOf }
}

/** Converts a graph, which may have other fields of a workflow beside it, to a workflow. */
function wholeOf(content: Record<string, unknown>): Record<string, unknown> {
  // A misspelled field goes where the nearest field belongs, so that the error message can suggest that field.
  const isGraph = ([name]: [string, unknown]) => nearest(name.slice(0, 64), ['nodes', 'edges']) !== undefined
  const members = Object.entries(content)
  return {
    ...Object.fromEntries(members.filter(member => !isGraph(member))),
    dag: Object.fromEntries(members.filter(isGraph)),
  }
}

/** Splits `dag.nodes.a.outputs[0]` into its parts. */
const pathParts = (path: string): (string | number)[] =>
  [...path.matchAll(/\[(\d+)\]|([^.[\]]+)/g)].map(([, index, name]) => (index === undefined ? name! : Number(index)))

function openPositions(text: string, isWhole: boolean): PositionOf {
  let document: ReturnType<typeof parseDocument> | undefined
  return path => {
    // The YAML parser reads JSON too, except tabs in places for which no position is needed.
    document ??= parseDocument(text, { logLevel: 'silent' })
    return positionIn(document, text, isWhole || path[0] !== 'dag' ? path : path.slice(1))
  }
}

/** Reads a file of parameters: one object, JSON or YAML. */
export function readParameters(path: string): Record<string, unknown> {
  const content = parsed(path, readText(path))
  if (!isObject(content)) throw damaged(`${path} contains no parameters. Write one object: names and their values.`)
  return content
}

const damaged = (message: string, more: ConstructorParameters<typeof CommandFailure>[3] = {}) =>
  new CommandFailure(exitCodes.data, 'invalid_value', message, more)

function readText(path: string): string {
  try {
    if (statSync(path).size > maxFileBytes) throw new Error(`it is longer than ${maxFileBytes >> 20} MiB`)
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw unreadable(path, cause)
  }
}

function parsed(path: string, text: string): unknown {
  try {
    return extname(path).toLowerCase() === '.json' ? JSON.parse(text) : readYaml(text, path).value
  } catch (cause) {
    const { message } = cause as Error
    throw damaged(cause instanceof Failure ? message : `${path} is not JSON: ${message.replace(/\.$/, '')}.`, { cause })
  }
}

/** Returns where in the file a finding is: line and column, counted from 1. */
export function positionOfFinding(
  { node_id: node, path, edge, nodes }: Diagnostic,
  { dag }: Pick<WorkflowDocument, 'dag'>,
  positionOf: PositionOf,
): { line: number; column: number } | undefined {
  const owner = node ?? nodes?.[0]
  if (owner !== undefined) return positionOf(['dag', 'nodes', owner, ...pathParts(path ?? '')])
  if (path !== undefined) return positionOf(pathParts(path))
  const at = edge ? dag.edges.findLastIndex(({ from, to }) => from === edge.from && to === edge.to) : -1
  return positionOf(at < 0 ? ['dag'] : ['dag', 'edges', at])
}

/** Names the places of findings in a file: `story.yaml:12:9`. */
export const positionsIn =
  (path: string, document: Pick<WorkflowDocument, 'dag'>, positionOf: PositionOf) =>
  (found: Diagnostic): string => {
    const position = positionOfFinding(found, document, positionOf)
    return position ? `${path}:${position.line}:${position.column}` : path
  }
