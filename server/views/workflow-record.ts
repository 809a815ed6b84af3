import { z } from 'zod'
import { Concurrency } from '../../core/dag/concurrency.ts'
import { Budget, Dag, Parameter } from '../../core/dag/definition.ts'
import { Failure } from '../../core/failure.ts'
import { isId } from '../../core/ids.ts'
import { definedMembers } from '../../core/members.ts'
import {
  array,
  integer,
  namedObject,
  nullable,
  nullableString,
  oneOf,
  optional,
  optionalString,
  string,
} from '../../core/schemas/fields.ts'
import { type Region, regions } from '../../core/schemas/region.ts'
import type { WorkflowDefinition, WorkflowRecord } from '../../core/store/workflows.ts'
import { type Survey, surveyInTimeSlices } from '../../core/workflows/diagnose.ts'
import { typeIssueCodes, warningCodes } from '../../core/workflows/diagnostics.ts'
import { offerFor } from '../../core/workflows/offer.ts'
import { defaultTimeout, type WorkflowFields } from '../../core/workflows/workflow-fields.ts'
import type { Owners } from '../http/request/owners.ts'
import { type Viewer } from './job-record.ts'
import { viewOf } from './view-of.ts'

const finding = <Code extends string>(codes: readonly [Code, ...Code[]]) =>
  z.object({
    code: oneOf('What was found.', codes),
    severity: oneOf('`error`: the workflow cannot be executed. `warning`: it can.', ['error', 'warning']),
    message: string('The same as a sentence.'),
    node_id: optionalString('Id of the node.'),
    path: optionalString('Where in the node, such as `inputs.prompt`.'),
    edge: optional(
      z.object({ from: string('Id of the first node.'), to: string('Id of the second node.') }),
      'The edge.',
    ),
    nodes: optional(z.array(z.string()), 'Ids of the nodes of a cycle.'),
    expected: optionalString('Expected type.'),
    actual: optionalString('Type that was found.'),
    reference: optionalString('The reference, such as `${nodes.a.result}`.'),
    suggestion: optionalString('Name that was probably meant.'),
  })
export const DiagnosticsObject = namedObject('WorkflowDiagnostics', 'What is wrong or unusual in a workflow.', {
  type_issues: array('Inputs, results and models that do not fit together.', finding(typeIssueCodes)),
  warnings: array('Findings about the graph, its references and its models.', finding(warningCodes)),
})

export const WorkflowObject = namedObject('Workflow', 'A stored workflow.', {
  id: string('Id of the workflow: `wf_…`.'),
  object: z.literal('workflow'),
  organization_id: string('Id of the organization: `org_…`.'),
  name: string('Name of the workflow.'),
  description: nullableString('What the workflow is for; null without a text.'),
  tags: array('Words by which it and its executions can be listed.', z.string()),
  region: oneOf('Region in which its executions run; `Global` for any.', regions),
  timeout: integer('Most seconds of an execution.'),
  on_failure: oneOf('Whether the first failure ends an execution, or only the nodes that depend on it.', [
    'fail_fast',
    'continue',
  ]),
  budget: nullable(Budget, 'The most that an execution may cost, in the currency unit; null without a limit.'),
  concurrency: nullable(Concurrency, 'How many executions run at once; null for any number.'),
  parameters: nullable(z.record(z.string(), Parameter), 'The input parameters by name; null if none are declared.'),
  dag: optional(Dag, 'The nodes and edges. In lists only with `?include=dag`.'),
  version: integer('Number of the version, from 1. Each change adds one.'),
  created_at: integer('Unix seconds.'),
  updated_at: integer('Unix seconds of the last change.'),
})

/** Returns the definition with these fields, and defaults for absent ones. */
export const definitionOf = (fields: WorkflowFields): WorkflowDefinition => ({
  name: fields.name,
  description: fields.description ?? null,
  tags: distinct(fields.tags),
  region: fields.region ?? 'Global',
  timeout: fields.timeout ?? defaultTimeout,
  onFailure: fields.on_failure ?? 'fail_fast',
  budget: fields.budget ?? null,
  concurrency: fields.concurrency ?? null,
  parameters: fields.parameters ?? null,
  dag: fields.dag,
})

/** Returns each of the tags once. */
export const distinct = (tags: readonly string[] | null | undefined): string[] => [...new Set(tags)]

/** Returns the fields of a change that were sent. */
export const changeOf = (fields: Partial<WorkflowFields>): Partial<WorkflowDefinition> =>
  definedMembers({
    name: fields.name,
    description: fields.description,
    tags: fields.tags === undefined ? undefined : distinct(fields.tags),
    region: fields.region,
    timeout: fields.timeout,
    onFailure: fields.on_failure,
    budget: fields.budget,
    concurrency: fields.concurrency,
    parameters: fields.parameters,
    dag: fields.dag,
  })

export const shownWorkflow = (
  workflow: WorkflowRecord,
  { withDag = true }: { withDag?: boolean } = {},
): z.input<typeof WorkflowObject> =>
  viewOf(WorkflowObject, workflow, {
    budget: workflow.budget ?? null,
    concurrency: workflow.concurrency ?? null,
    dag: withDag ? workflow.dag : undefined,
  })

type DiagnosisOwners = Owners<'accounts' | 'admission' | 'organizations' | 'registry' | 'workflows'>

/** The part of a definition that is validated. */
type Diagnosed = Pick<WorkflowDefinition, 'dag' | 'parameters'> & {
  region?: Region | undefined
  /** Of a stored workflow. */
  id?: string
}

export const diagnosticsFor = (viewer: Viewer, definition: Diagnosed, owners: DiagnosisOwners) =>
  surveyFor(viewer, definition, owners).then(({ diagnostics }) => diagnostics)

export async function surveyFor(
  viewer: Viewer,
  { dag, parameters, region, id }: Diagnosed,
  owners: DiagnosisOwners,
): Promise<Survey> {
  const asks = Object.values(dag.nodes).some(({ inputs }) => Array.isArray(inputs.approvers))
  const approvers = asks ? await approversOf(viewer.caller.organizationId, owners) : undefined
  const offer = {
    ...offerFor(viewer.caller, owners, region),
    ...(approvers ? { approvers } : {}),
  }
  return surveyInTimeSlices(dag, parameters ?? undefined, offer, { self: id })
}

/** How many tokens and how many users are looked at for the names of approvers. */
const maxApprovers = 1_000

/** The names of all tokens and the addresses of all users; undefined if there are too many to tell. */
async function approversOf(
  organizationId: string,
  { accounts, organizations }: Owners<'accounts' | 'organizations'>,
): Promise<Set<string> | undefined> {
  const page = { limit: maxApprovers }
  const tokens = await accounts.list(organizationId, { ...page, status: 'active' })
  const users = await organizations.users.list(organizationId, page)
  return tokens.length >= maxApprovers || users.length >= maxApprovers
    ? undefined
    : new Set([...tokens.map(({ name }) => name), ...users.map(({ email }) => email)])
}

/** Finds a workflow of the caller's organization. Throws Failure `not_found`. */
export async function findWorkflow(id: string, viewer: Viewer, { workflows }: Owners<'workflows'>, version?: number) {
  const found = isId(id, 'wf_') ? await workflows.find(viewer.caller.organizationId, id, version) : undefined
  if (found) return found
  const which = version === undefined ? '' : ` in version ${version}`
  throw new Failure('not_found', `Workflow ${id.slice(0, 64)} was not found${which}.`)
}
