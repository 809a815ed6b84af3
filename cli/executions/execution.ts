import { z } from 'zod'
import { Dag } from '../../core/dag/definition.ts'

const WaitingFor = z.looseObject({
  reason: z.string(),
  detail: z.string().nullish(),
  eta_seconds: z.number().nullish(),
})
const Fault = z.looseObject({ code: z.string(), message: z.string() })

export const ExecutionNode = z.looseObject({
  node_id: z.string(),
  task: z.string(),
  model_id: z.string(),
  status: z.string(),
  cached: z.boolean().default(false),
  job_id: z.string().nullish(),
  started_at: z.number().nullish(),
  duration_ms: z.number().nullish(),
  /** 0 to 1. */
  progress: z.number().nullish(),
  queue_position: z.number().nullish(),
  waiting_for: WaitingFor.nullish(),
  result: z.unknown().optional(),
  error: Fault.nullish(),
})
export type ExecutionNode = z.output<typeof ExecutionNode>

const Output = z.looseObject({ result: z.unknown(), values: z.record(z.string(), z.unknown()).default({}) })

/** The fields of an execution that the command line uses. Other fields are kept for `--json`. */
export const Execution = z.looseObject({
  id: z.string(),
  workflow_id: z.string().nullish(),
  workflow_version: z.number().nullish(),
  status: z.string(),
  input_params: z.unknown().optional(),
  outputs: z.record(z.string(), Output).nullish(),
  error: z.looseObject({ code: z.string(), message: z.string(), node_id: z.string().nullish() }).nullish(),
  created_at: z.number(),
  started_at: z.number().nullish(),
  finished_at: z.number().nullish(),
  duration_ms: z.number().nullish(),
  nodes: z.array(ExecutionNode).optional(),
  progress: z
    .looseObject({ total: z.number(), completed: z.number(), failed: z.number(), skipped: z.number() })
    .optional(),
  parent_execution_id: z.string().nullish(),
  dag: Dag.optional(),
})
export type Execution = z.output<typeof Execution>

export const ExecutionAnswer = z.looseObject({ execution: Execution })
export const ExecutionPage = z.looseObject({
  executions: z.array(Execution),
  has_more: z.boolean().default(false),
  next_cursor: z.string().nullish(),
})

export const executionPath = (id: string): string => `/api/workflow-executions/${encodeURIComponent(id)}`

/** Whether an execution or a node has ended. An unknown state counts as not ended. */
export const isOver = (status: string): boolean =>
  ['completed', 'failed', 'cancelled', 'timed_out', 'skipped'].includes(status)
