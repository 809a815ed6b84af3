import { z } from 'zod'
import {
  array,
  boolean,
  integer,
  nullable,
  nullableInteger,
  nullableNumber,
  nullableString,
  number,
  object,
  oneOf,
  optional,
  optionalInteger,
  optionalString,
  string,
} from '../../core/schemas/fields.ts'
import { Task } from '../../core/schemas/task.ts'
import { executionEventTypes } from '../../core/store/event-types.ts'
import { batchEventTypes, jobEventTypes, jobStatuses } from '../../core/store/store.ts'
import { ExecutionNodeObject } from '../views/execution-nodes.ts'
import { ExecutionObject, ExecutionSummary } from '../views/execution-record.ts'
import { JobErrorObject, JobSummary, WaitingFor } from '../views/job-record.ts'

/** Returns the function that makes the schema of an event with these fields beside its type and data. */
const eventOf =
  <Head extends z.ZodRawShape>(head: Head) =>
  <Type extends z.ZodType, Data extends z.ZodType>(type: Type, data: Data) =>
    z.object({ ...head, type, data })

/**
 * Returns the schemas of the events that belong to the organization itself, each with these fields beside type and data.
 * Messages of webhooks have the same data.
 */
export function organizationEventSchemas<Head extends z.ZodRawShape>(head: Head) {
  const event = eventOf(head)
  const money = (text: string) => number(`${text}, in the currency of the prices.`)
  const quota = {
    spend_limit: money('The monthly spend limit'),
    spent: money('Cost of the work that has ended this month'),
    period_start: integer('Start of the calendar month in UTC, Unix seconds.'),
    period_end: integer('End of the month, Unix seconds, excluded.'),
    percent: z.union([z.literal(80), z.literal(100)]).describe('Which part of the limit is reached.'),
  }
  const ofOrganization = z.object({
    of: z.literal('organization').describe('The limit is that of the organization.'),
    ...quota,
  })
  const ofToken = z.object({
    of: z.literal('token').describe('The limit is that of a token.'),
    token_id: string('Id of the token whose work has reached it.'),
    token_name: nullableString('Name of the token; null if it no longer exists.'),
    ...quota,
  })
  return [
    event(
      oneOf('What happened: 80 % or 100 % of a monthly spend limit are spent. Each is sent once a month.', [
        'quota.warning',
        'quota.exceeded',
      ]),
      z.discriminatedUnion('of', [ofOrganization, ofToken]).describe('The limit. Webhooks have the same data.'),
    ),
    event(
      oneOf('How the batch has ended.', batchEventTypes),
      object('The batch. Webhooks have the same data.', {
        object: z.literal('batch'),
        id: string('Id of the batch.'),
        status: string('State of the batch.'),
        endpoint: string('Endpoint of its lines.'),
        input_file_id: string('Id of its input file.'),
        output_file_id: nullableString('File with the answers; null without any.'),
        error_file_id: nullableString('File with the errors; null without any.'),
        request_counts: object('How many lines there were, and what became of them.', {
          total: integer('Lines of the input file.'),
          completed: integer('Lines with an answer.'),
          failed: integer('All other lines.'),
        }),
      }),
    ),
    event(
      oneOf('What happened.', ['token.created', 'token.revoked']),
      object('The token. Webhooks have the same data.', {
        token_id: string('Id of the token.'),
        name: string('Name of the token.'),
      }),
    ),
  ] as const
}

/**
 * Registers the schemas of the events of jobs and executions. They have one shape for all types, with what they are
 * about in `data`.
 */
export function registerLogEvents(): void {
  const head = {
    id: optionalString(
      'Id of the event, such as `evt_42`: send it as `Last-Event-ID` to continue after it. Progress has none.',
    ),
    timestamp: string('ISO 8601, UTC.'),
    created_at: integer('The same in Unix seconds.'),
  }
  const event = eventOf(head)
  const snapshot = (description: string, data: z.ZodRawShape) => event(z.literal('snapshot'), object(description, data))
  const error = z.unknown().meta({ $ref: '#/components/schemas/ErrorResponse' })
  const job_id = string('Id of the job.')
  const status = oneOf('State of the job after the event.', jobStatuses)
  const progress = nullableNumber('Progress from 0 to 1; null if unknown.')
  const queue_position = optional(z.int().nullable(), 'How many jobs are before it; null unless it waits.')
  const waiting_for = nullable(WaitingFor, 'Why it has not begun; null unless it waits.')
  const jobEvents = [
    event(
      oneOf('What happened.', jobEventTypes),
      object('The job.', {
        job_id,
        queue_id: optionalString('Id of the same job under `/slug/requests`: `q_…`.'),
        task: Task.optional(),
        model_id: optionalString('Id of the model.'),
        slug: optional(z.string().nullable(), 'The slug that was requested; null if none was.'),
        status,
        attempt: optionalInteger('Number of the attempt, from 1; 0 before the first.'),
        error: optional(
          JobErrorObject.nullable(),
          'Why it failed; in `job.retrying` why the attempt did, absent if it was given back.',
        ),
        result: optional(z.unknown(), 'Result of the task. Absent if longer than 64 KiB: read it with the job.'),
      }),
    ),
    event(
      z.literal('job.progress'),
      object('The progress of the job.', {
        job_id,
        status,
        progress,
        queue_position,
        eta_seconds: nullableInteger('Expected seconds until the end; null if unknown.'),
        waiting_for,
      }),
    ),
  ] as const
  z.union([snapshot('The job when the stream began.', { job: JobSummary }), ...jobEvents, error]).meta({
    id: 'JobEvent',
    description: 'An event of a job.',
  })

  const execution_id = string('Id of the execution.')
  const nodeTypes = (['started', 'retrying', 'completed', 'failed', 'cancelled'] as const).map(
    one => `workflow_execution.node.${one}` as const,
  )
  const executionEvents = event(
    oneOf('What happened.', [...executionEventTypes, ...nodeTypes]),
    object('The execution or its node.', {
      execution_id,
      execution: optional(ExecutionSummary, 'The execution, in events that are not of a node.'),
      node_id: optionalString('Id of the node, in events of a node.'),
      job_id: optional(z.string().nullable(), 'Id of the job of the node.'),
      attempt: optional(z.int().nullable(), 'Number of the attempt of the node.'),
      error: optional(JobErrorObject, 'Why the node failed, or this attempt of it.'),
      result: optional(z.unknown(), 'Result of the node. Absent if longer than 64 KiB: read it with the node.'),
    }),
  )
  z.union([
    snapshot('What has not ended when the stream begins.', {
      jobs: array('The newest 50 jobs that have not ended.', JobSummary),
      executions: array('The newest 50 executions that have not ended.', ExecutionSummary),
      has_more: boolean('Whether there may be more jobs: list them with `GET /api/jobs`.'),
    }),
    ...jobEvents,
    executionEvents,
    ...organizationEventSchemas(head),
    error,
  ]).meta({ id: 'OrganizationEvent', description: 'An event of the organization, its jobs and its executions.' })
  z.union([
    snapshot('The execution when the stream began.', { execution: ExecutionObject }),
    executionEvents,
    event(
      z.literal('workflow_execution.node.progress'),
      object('The progress of the execution.', {
        execution_id,
        progress: z.looseObject({}).describe('Numbers of nodes by state.'),
        nodes: array(
          'Nodes that run or wait.',
          z.object({
            node_id: string('Id of the node.'),
            status: string('State of the node.'),
            items: ExecutionNodeObject.shape.items,
            progress,
            queue_position,
            waiting_for,
          }),
        ),
      }),
    ),
    error,
  ]).meta({ id: 'ExecutionEvent', description: 'An event of an execution.' })
}
