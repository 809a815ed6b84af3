import { z } from 'zod'
import {
  array,
  boolean,
  integer,
  nullableInteger,
  nullableNumber,
  nullableString,
  number,
  object,
  optionalInteger,
  optionalString,
  string,
} from '../../core/schemas/fields.ts'
import { Task } from '../../core/schemas/task.ts'
import { batchEventTypes, jobEventTypes, jobStatuses } from '../../core/store/store.ts'
import { executionEventTypes } from '../../core/store/workflows.ts'
import { ExecutionObject, ExecutionSummary } from '../views/execution-record.ts'
import { JobErrorObject, JobSummary, WaitingFor } from '../views/job-record.ts'

/**
 * Returns the schemas of the events that belong to the organization itself, each with these fields beside type and data.
 * Messages of webhooks have the same data.
 */
export function organizationEventSchemas<Head extends z.ZodRawShape>(head: Head) {
  const money = (text: string) => number(`${text}, in the currency of the prices.`)
  const count = (text: string) => integer(text)
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
    z.object({
      ...head,
      type: z
        .enum(['quota.warning', 'quota.exceeded'])
        .describe('What happened: 80 % or 100 % of a monthly spend limit are spent. Each is sent once a month.'),
      data: z.discriminatedUnion('of', [ofOrganization, ofToken]).describe('The limit. Webhooks have the same data.'),
    }),
    z.object({
      ...head,
      type: z.enum(batchEventTypes).describe('How the batch has ended.'),
      data: object('The batch. Webhooks have the same data.', {
        object: z.literal('batch'),
        id: string('Id of the batch.'),
        status: string('State of the batch.'),
        endpoint: string('Endpoint of its lines.'),
        input_file_id: string('Id of its input file.'),
        output_file_id: nullableString('File with the answers; null without any.'),
        error_file_id: nullableString('File with the errors; null without any.'),
        request_counts: object('How many lines there were, and what became of them.', {
          total: count('Lines of the input file.'),
          completed: count('Lines with an answer.'),
          failed: count('All other lines.'),
        }),
      }),
    }),
    z.object({
      ...head,
      type: z.enum(['token.created', 'token.revoked']).describe('What happened.'),
      data: object('The token. Webhooks have the same data.', {
        token_id: string('Id of the token.'),
        name: string('Name of the token.'),
      }),
    }),
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
  const job_id = string('Id of the job.')
  const task = Task.optional()
  const model_id = optionalString('Id of the model.')
  const status = z.enum(jobStatuses).describe('State of the job after the event.')
  const queue_position = z.int().nullable().optional().describe('How many jobs are before it; null unless it waits.')
  const progress = nullableNumber('Progress from 0 to 1; null if unknown.')
  const jobEvents = [
    z.object({
      ...head,
      type: z.enum(jobEventTypes).describe('What happened.'),
      data: object('The job.', {
        job_id,
        queue_id: optionalString('Id of the same job under `/slug/requests`: `q_…`.'),
        task,
        model_id,
        slug: z.string().nullable().optional().describe('The slug that was requested; null if none was.'),
        status,
        attempt: optionalInteger('Number of the attempt, from 1; 0 before the first.'),
        error: JobErrorObject.nullable()
          .optional()
          .describe('Why it failed; in `job.retrying` why the attempt did, absent if it was given back.'),
        result: z
          .unknown()
          .optional()
          .describe('Result of the task. Absent if longer than 64 KiB: read it with the job.'),
      }),
    }),
    z.object({
      ...head,
      type: z.literal('job.progress'),
      data: object('The progress of the job.', {
        job_id,
        status,
        progress,
        queue_position,
        eta_seconds: nullableInteger('Expected seconds until the end; null if unknown.'),
        waiting_for: WaitingFor.nullable().describe('Why it has not begun; null unless it waits.'),
      }),
    }),
  ] as const
  const error = z.unknown().meta({ $ref: '#/components/schemas/ErrorResponse' })
  const snapshotType = z.literal('snapshot')
  z.union([
    z.object({
      ...head,
      type: snapshotType,
      data: object('The job when the stream began.', { job: JobSummary }),
    }),
    ...jobEvents,
    error,
  ]).meta({ id: 'JobEvent', description: 'An event of a job.' })

  const execution_id = string('Id of the execution.')
  const nodeTypes = (['started', 'retrying', 'completed', 'failed', 'cancelled'] as const).map(
    one => `workflow_execution.node.${one}` as const,
  )
  const executionEvents = z.object({
    ...head,
    type: z.enum([...executionEventTypes, ...nodeTypes]).describe('What happened.'),
    data: object('The execution or its node.', {
      execution_id,
      execution: ExecutionSummary.optional().describe('The execution, in events that are not of a node.'),
      node_id: optionalString('Id of the node, in events of a node.'),
      job_id: z.string().nullable().optional().describe('Id of the job of the node.'),
      attempt: z.int().nullable().optional().describe('Number of the attempt of the node.'),
      error: JobErrorObject.optional().describe('Why the node failed, or this attempt of it.'),
      result: z
        .unknown()
        .optional()
        .describe('Result of the node. Absent if longer than 64 KiB: read it with the node.'),
    }),
  })
  z.union([
    z.object({
      ...head,
      type: snapshotType,
      data: object('What has not ended when the stream begins.', {
        jobs: array('The newest 50 jobs that have not ended.', JobSummary),
        executions: array('The newest 50 executions that have not ended.', ExecutionSummary),
        has_more: boolean('Whether there may be more jobs: list them with `GET /api/jobs`.'),
      }),
    }),
    ...jobEvents,
    executionEvents,
    ...organizationEventSchemas(head),
    error,
  ]).meta({ id: 'OrganizationEvent', description: 'An event of the organization, its jobs and its executions.' })
  z.union([
    z.object({
      ...head,
      type: snapshotType,
      data: object('The execution when the stream began.', { execution: ExecutionObject }),
    }),
    executionEvents,
    z.object({
      ...head,
      type: z.literal('workflow_execution.node.progress'),
      data: object('The progress of the execution.', {
        execution_id,
        progress: z.looseObject({}).describe('Numbers of nodes by state.'),
        nodes: array(
          'Nodes that run or wait.',
          z.object({
            node_id: string('Id of the node.'),
            status: string('State of the node.'),
            progress,
            queue_position,
            waiting_for: WaitingFor.nullable().describe('Why it has not begun; null unless it waits.'),
          }),
        ),
      }),
    }),
    error,
  ]).meta({ id: 'ExecutionEvent', description: 'An event of an execution.' })
}
