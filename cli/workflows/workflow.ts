import { z } from 'zod'
import { Dag, Parameter } from '../../core/dag/definition.ts'
import { isId } from '../../core/ids.ts'
import { blockingOf, type Diagnostic, type Diagnostics } from '../../core/workflows/diagnostics.ts'
import type { Client } from '../client/client.ts'
import { CommandFailure, exitCodes, refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/paint.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** The fields of a workflow that commands use. */
export const Workflow = z.looseObject({
  id: z.string(),
  name: z.string(),
  description: z.string().nullish(),
  version: z.number(),
  parameters: z.record(z.string(), Parameter).nullish(),
  dag: Dag.optional(),
  created_at: z.number(),
  updated_at: z.number(),
})
export type Workflow = z.output<typeof Workflow>

export const WorkflowPage = z.looseObject({
  workflows: z.array(Workflow),
  has_more: z.boolean().default(false),
  next_cursor: z.string().nullish(),
})

const DiagnosticsAnswer = z
  .looseObject({ type_issues: z.array(z.looseObject({})), warnings: z.array(z.looseObject({})) })
  .transform(found => found as unknown as Diagnostics)
export const Diagnosed = z.looseObject({ workflow: Workflow.extend({ dag: Dag }), diagnostics: DiagnosticsAnswer })
export type Diagnosed = z.output<typeof Diagnosed>
export const Validation = z.looseObject({ valid: z.boolean(), diagnostics: DiagnosticsAnswer })

export const workflowPath = (id: string): string => `/api/workflows/${encodeURIComponent(id)}`

/** Finds workflows with this text in their name, last changed first. */
const searchWorkflows = (client: Client, word: string, signal?: AbortSignal) =>
  client.ask({
    method: 'GET',
    path: `/api/workflows?${new URLSearchParams({ q: word.slice(0, 256), limit: '100' }).toString()}`,
    answer: WorkflowPage,
    ...(signal ? { signal } : {}),
  })

/** Returns the workflows with exactly this name, last changed first. */
export const workflowsNamed = async (client: Client, name: string): Promise<Workflow[]> =>
  (await searchWorkflows(client, name)).workflows.filter(one => one.name === name)

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
  return client.ask({ method: 'GET', path: workflowPath(id), answer: Diagnosed, ...(signal ? { signal } : {}) })
}

async function idOf(client: Client, name: string, { signal, orFile }: FindOptions): Promise<string> {
  const { workflows } = await searchWorkflows(client, name, signal)
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
