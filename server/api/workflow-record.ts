import { z } from 'zod'
import { Dag, Parameter } from '../../core/dag/definition.ts'
import { Failure } from '../../core/failure.ts'
import { isId } from '../../core/ids.ts'
import { regions, type WorkflowDefinition, type WorkflowRecord } from '../../core/store/workflows.ts'
import { type Survey, surveyInTimeSlices } from '../../core/workflows/diagnose.ts'
import type { Offer } from '../../core/workflows/diagnose-node.ts'
import { type Diagnostics, typeIssueCodes, warningCodes } from '../../core/workflows/diagnostics.ts'
import { offerOf } from '../../core/workflows/offer.ts'
import type { WorkflowFields } from '../../core/workflows/workflow-fields.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import { seconds } from './job-record.ts'

const finding = <Code extends string>(codes: readonly [Code, ...Code[]]) =>
  z.object({
    code: z.enum(codes),
    severity: z.enum(['error', 'warning']).describe('With an error it cannot be executed.'),
    message: z.string(),
    node_id: z.string().optional(),
    path: z.string().optional(),
    edge: z.object({ from: z.string(), to: z.string() }).optional(),
    nodes: z.array(z.string()).optional(),
    expected: z.string().optional(),
    actual: z.string().optional(),
    reference: z.string().optional(),
    suggestion: z.string().optional(),
  })
export const DiagnosticsObject = z
  .object({
    type_issues: z.array(finding(typeIssueCodes)),
    warnings: z.array(finding(warningCodes)),
  })
  .meta({ id: 'WorkflowDiagnostics' })

export const WorkflowObject = z
  .object({
    id: z.string(),
    object: z.literal('workflow'),
    organization_id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    region: z.enum(regions),
    timeout: z.int(),
    on_failure: z.enum(['fail_fast', 'continue']),
    parameters: z.record(z.string(), Parameter).nullable(),
    dag: Dag.optional(),
    version: z.int(),
    created_at: z.int(),
    updated_at: z.int(),
  })
  .meta({ id: 'Workflow' })

/** The definition that the fields make. */
export const definitionOf = (fields: WorkflowFields): WorkflowDefinition => ({
  name: fields.name,
  description: fields.description ?? null,
  region: fields.region ?? 'Global',
  timeout: fields.timeout ?? 3_600,
  onFailure: fields.on_failure ?? 'fail_fast',
  parameters: fields.parameters ?? null,
  dag: fields.dag,
})

/** Of a change, what was sent. */
export const changeOf = (fields: Partial<WorkflowFields>): Partial<WorkflowDefinition> => ({
  ...(fields.name === undefined ? {} : { name: fields.name }),
  ...(fields.description === undefined ? {} : { description: fields.description }),
  ...(fields.region === undefined ? {} : { region: fields.region }),
  ...(fields.timeout === undefined ? {} : { timeout: fields.timeout }),
  ...(fields.on_failure === undefined ? {} : { onFailure: fields.on_failure }),
  ...(fields.parameters === undefined ? {} : { parameters: fields.parameters }),
  ...(fields.dag === undefined ? {} : { dag: fields.dag }),
})

export const shownWorkflow = (
  workflow: WorkflowRecord,
  { withDag = true }: { withDag?: boolean } = {},
): z.input<typeof WorkflowObject> => ({
  id: workflow.id,
  object: 'workflow',
  organization_id: workflow.organizationId,
  name: workflow.name,
  description: workflow.description,
  region: workflow.region,
  timeout: workflow.timeout,
  on_failure: workflow.onFailure,
  parameters: workflow.parameters,
  ...(withDag ? { dag: workflow.dag } : {}),
  version: workflow.version,
  created_at: seconds(workflow.createdAt)!,
  updated_at: seconds(workflow.updatedAt)!,
})

/** What the caller may make workflows of: models that his token may not use are not there for him. */
export const offerFor = (call: Call, { admission, registry }: Pick<Owners, 'admission' | 'registry'>): Offer =>
  offerOf(registry, id => admission.allowed(call.caller, id))

export const diagnosticsFor = (
  call: Call,
  definition: Pick<WorkflowDefinition, 'dag' | 'parameters'>,
  owners: Pick<Owners, 'admission' | 'registry'>,
): Promise<Diagnostics> => surveyFor(call, definition, owners).then(({ diagnostics }) => diagnostics)

export const surveyFor = (
  call: Call,
  { dag, parameters }: Pick<WorkflowDefinition, 'dag' | 'parameters'>,
  owners: Pick<Owners, 'admission' | 'registry'>,
): Promise<Survey> => surveyInTimeSlices(dag, parameters ?? undefined, offerFor(call, owners))

const isWorkflowId = (id: string): boolean => id.startsWith('wf_') && isId(id)

/** The workflow of the caller's organization. Throws Failure `not_found`. */
export async function findWorkflow(
  id: string,
  call: Call,
  { workflows }: Pick<Owners, 'workflows'>,
  version?: number,
): Promise<WorkflowRecord> {
  const found = isWorkflowId(id) ? await workflows.find(call.caller.organizationId, id, version) : undefined
  if (found) return found
  const which = version === undefined ? '' : ` in version ${version}`
  throw new Failure('not_found', `Workflow ${id.slice(0, 64)} was not found${which}.`)
}
