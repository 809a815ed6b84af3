import { Dag, type Parameters } from '../../core/dag/definition.ts'
import { isId } from '../../core/ids.ts'
import { blockingOf, type Diagnostic, type Diagnostics } from '../../core/workflows/diagnostics.ts'
import { type Api, type Client, dataOf, memberOf } from '../client/client.ts'
import { CommandFailure, exitCodes, refused, unreadableAnswer, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { WorkflowDocument } from './document.ts'

export type Workflow = Api['Workflow']
/** A workflow with its definition, and what was found in it. */
export interface Diagnosed {
  workflow: Workflow & { dag: Dag; parameters: Parameters | null }
  diagnostics: Diagnostics
}

/** Returns a definition of the API with all defaults. */
export function definitionOf(dag: Api['Dag']): Dag {
  const read = Dag.safeParse(dag)
  if (read.success) return read.data
  throw unreadableAnswer('the server', read.error)
}

/** Validates a definition with the models of the server. */
export const diagnosticsOf = async (
  { api }: Client,
  { dag, parameters, region, timeout }: Pick<WorkflowDocument, 'dag' | 'parameters' | 'region' | 'timeout'>,
  signal?: AbortSignal,
): Promise<Diagnostics> =>
  memberOf(api.POST('/api/workflows/validate', { body: { dag, parameters, region, timeout }, signal }), 'diagnostics')

/** Finds workflows with this text in their name, last changed first. */
const searchWorkflows = ({ api }: Client, word: string, signal?: AbortSignal): Promise<Workflow[]> => {
  const query = { q: word.slice(0, 256), limit: 100 }
  return memberOf(api.GET('/api/workflows', { params: { query }, signal }), 'workflows')
}

/** Returns the workflows with exactly this name, last changed first. */
export const workflowsNamed = async (client: Client, name: string): Promise<Workflow[]> =>
  (await searchWorkflows(client, name)).filter(one => one.name === name)

/** `orFile`: the command also accepts a file, which the error message then mentions. */
interface FindOptions {
  signal?: AbortSignal
  orFile?: boolean
}

/** Finds a workflow by id or name. Throws `not_found`, and usage when several have the name. */
export async function findWorkflow(
  client: Client,
  text: string,
  { signal, orFile = false }: FindOptions = {},
): Promise<Diagnosed> {
  const id = text.startsWith('wf_') && isId(text) ? text : await idOf(client, text, { signal, orFile })
  const found = await dataOf(client.api.GET('/api/workflows/{id}', { params: { path: { id } }, signal }))
  const { workflow, diagnostics } = found as unknown as Diagnosed
  return { workflow: { ...workflow, dag: definitionOf(workflow.dag) }, diagnostics }
}

async function idOf(client: Client, name: string, { signal, orFile }: FindOptions): Promise<string> {
  const workflows = await searchWorkflows(client, name, signal)
  const found = workflows.filter(one => one.name === name)
  if (found.length > 1)
    throw usageFailure(
      `Several workflows have the name '${printable(name)}'. Give the id of one: ${found.map(({ id }) => id).join(', ')}.`,
    )
  if (found[0]) return found[0].id
  const near = workflows.slice(0, 5).map(one => `'${printable(one.name)}'`)
  throw refused(
    'not_found',
    `There is no workflow with the id or the name '${printable(name)}'${orFile ? ', and no such file' : ''}. ${near.length > 0 ? `Did you mean ${near.join(' or ')}?` : 'See: infer workflow list'}`,
  )
}

interface AdmitOptions {
  /** Whether to print no warnings. */
  quiet?: boolean
  /** Returns the position of a finding; by default its path in the definition. */
  placeOf?: (found: Diagnostic) => string
}

const pathOf = ({ node_id: node, path }: Diagnostic): string =>
  node === undefined ? (path ?? 'dag') : `nodes.${node}${path === undefined ? '' : `.${path}`}`

/**
 * Prints warnings on standard error. Throws with exit code 65 when the workflow cannot run; the details contain each
 * error with its position.
 */
export function refuseErrors(
  terminal: Terminal,
  diagnostics: Diagnostics,
  { quiet = false, placeOf }: AdmitOptions = {},
): void {
  const blocking = blockingOf(diagnostics)
  if (!quiet)
    for (const one of [...diagnostics.warnings, ...diagnostics.type_issues])
      if (!blocking.includes(one)) terminal.warn(printable(placeOf ? `${placeOf(one)}: ${one.message}` : one.message))
  if (blocking.length === 0) return
  throw new CommandFailure(
    exitCodes.data,
    'invalid_graph',
    `The workflow cannot run: ${blocking.length === 1 ? 'one error' : `${blocking.length} errors`}.`,
    {
      details: blocking.map(one => ({
        code: one.code,
        message: printable(one.message),
        path: printable((placeOf ?? pathOf)(one)),
      })),
    },
  )
}
