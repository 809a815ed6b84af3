import { z } from 'zod'
import {
  boolean,
  integer,
  nullableInteger,
  nullableNumber,
  optionalInteger,
  optionalString,
  string,
} from '../../core/schemas/fields.ts'
import { Task } from '../../core/schemas/task.ts'
import { jobEventTypes, jobStatuses } from '../../core/store/store.ts'
import { executionEventTypes } from '../../core/store/workflows.ts'
import { ExecutionObject, ExecutionSummary } from '../views/execution-record.ts'
import { JobErrorObject } from '../views/job-error.ts'
import { JobSummary } from '../views/job-record.ts'
import { WaitingFor } from '../views/waiting-for.ts'
import { organizationEventSchemas } from './organization-event-schemas.ts'

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
      data: z
        .object({
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
        })
        .describe('The job.'),
    }),
    z.object({
      ...head,
      type: z.literal('job.progress'),
      data: z
        .object({
          job_id,
          status,
          progress,
          queue_position,
          eta_seconds: nullableInteger('Expected seconds until the end; null if unknown.'),
          waiting_for: WaitingFor.nullable().describe('Why it has not begun; null unless it waits.'),
        })
        .describe('The progress of the job.'),
    }),
  ] as const
  const error = z.unknown().meta({ $ref: '#/components/schemas/ErrorResponse' })
  const snapshotType = z.literal('snapshot')
  z.union([
    z.object({
      ...head,
      type: snapshotType,
      data: z.object({ job: JobSummary }).describe('The job when the stream began.'),
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
    data: z
      .object({
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
      })
      .describe('The execution or its node.'),
  })
  z.union([
    z.object({
      ...head,
      type: snapshotType,
      data: z
        .object({
          jobs: z.array(JobSummary).describe('The newest 50 jobs that have not ended.'),
          executions: z.array(ExecutionSummary).describe('The newest 50 executions that have not ended.'),
          has_more: boolean('Whether there may be more jobs: list them with `GET /api/jobs`.'),
        })
        .describe('What has not ended when the stream begins.'),
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
      data: z.object({ execution: ExecutionObject }).describe('The execution when the stream began.'),
    }),
    executionEvents,
    z.object({
      ...head,
      type: z.literal('workflow_execution.node.progress'),
      data: z
        .object({
          execution_id,
          progress: z.looseObject({}).describe('Numbers of nodes by state.'),
          nodes: z
            .array(
              z.object({
                node_id: string('Id of the node.'),
                status: string('State of the node.'),
                progress,
                queue_position,
                waiting_for: WaitingFor.nullable().describe('Why it has not begun; null unless it waits.'),
              }),
            )
            .describe('Nodes that run or wait.'),
        })
        .describe('The progress of the execution.'),
    }),
    error,
  ]).meta({ id: 'ExecutionEvent', description: 'An event of an execution.' })
}
