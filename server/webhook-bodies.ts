import { Failure } from '../core/failure.ts'
import { queueIdOf } from '../core/ids.ts'
import type { NewDelivery } from '../core/store/store.ts'
import { boundedData, messageText } from '../core/webhooks/message.ts'
import type { Owners } from './http/request/owners.ts'
import { falFailure } from './surfaces/fal/errors.ts'
import { isPrediction, predictionText } from './surfaces/replicate/view.ts'
import { keptOf } from './views/execution-nodes.ts'
import { executionSummary } from './views/execution-record.ts'
import { shownResult } from './views/execution-results.ts'
import { outputOf } from './views/generation-request.ts'
import { eventId } from './views/job-event.ts'
import { jobAnswer } from './views/job-record.ts'

type BodyOwners = Pick<Owners, 'cpu' | 'executions' | 'files' | 'jobs'>

const missing = (id: string) => new Failure('not_found', `${id} was removed before its webhook was sent.`)

/**
 * Makes the bodies of webhooks: the object of the event as its own endpoint shows it, or its id and URL if that is long.
 * `origin`: what this server's own URLs begin with, where the delivery does not say.
 */
export function openWebhookBodies(owners: BodyOwners, origin: () => string) {
  async function jobData(delivery: NewDelivery, from: { origin: string }): Promise<string> {
    const job = await owners.jobs.find(delivery.organizationId, delivery.subject.jobId!)
    if (!job) throw missing(delivery.subject.jobId!)
    const { text, embedded } = await jobAnswer(job, from, owners)
    const short = { id: job.id, object: 'job', status: job.status, url: `${from.origin}/api/jobs/${job.id}` }
    return embedded.length > 0 ? JSON.stringify(short) : boundedData(text, short)
  }

  async function executionData({ organizationId, subject }: NewDelivery, from: { origin: string }): Promise<string> {
    const id = subject.executionId!
    const execution = await owners.executions.find(organizationId, id)
    if (!execution) throw missing(id)
    const done = execution.status === 'completed'
    const nodes = done ? await owners.executions.nodes(organizationId, id) : []
    const kept = await keptOf(execution, nodes, from, owners)
    const outputs = done ? Object.fromEntries([...kept].map(([nodeId, { output }]) => [nodeId, output])) : null
    const url = `${from.origin}/api/workflow-executions/${id}`
    return boundedData(JSON.stringify({ ...executionSummary(execution), outputs }), {
      id,
      object: 'workflow_execution',
      status: execution.status,
      url,
    })
  }

  async function nodeData({ organizationId, subject, type }: NewDelivery, from: { origin: string }): Promise<string> {
    const { executionId, nodeId, jobId, attempt } = subject
    const url = `${from.origin}/api/workflow-executions/${executionId}/nodes/${encodeURIComponent(nodeId!)}`
    const data: Record<string, unknown> = { execution_id: executionId, node_id: nodeId, job_id: jobId, attempt }
    const short = { id: executionId, ...data, url }
    if (!/\.(completed|failed|cached)$/.test(type)) return JSON.stringify(short)
    const ended = (await owners.executions.results(organizationId, executionId!, [nodeId!]))[nodeId!]
    if (!ended) throw missing(executionId!)
    if (ended.error) data.error = ended.error
    const job = jobId === null ? undefined : await owners.jobs.find(organizationId, jobId)
    if (typeof ended.result === 'string' && job) data.result = await shownResult(job.task, ended.result, from, owners)
    return boundedData(JSON.stringify({ id: executionId, ...data, url }), short)
  }

  /** The body of fal's webhooks: the output alone, or the error. */
  async function falBody(delivery: NewDelivery, from: { origin: string }): Promise<string> {
    const id = queueIdOf(delivery.subject.jobId!)
    const ids = { request_id: id, gateway_request_id: id }
    const job = await owners.jobs.find(delivery.organizationId, delivery.subject.jobId!)
    if (!job) return JSON.stringify({ ...ids, status: 'ERROR', error: 'The request was removed.', payload: null })
    if (job.status !== 'completed') {
      const { body } = falFailure(job)
      const error = job.error?.message ?? 'The request was cancelled.'
      return JSON.stringify({ ...ids, status: 'ERROR', error, payload: body })
    }
    try {
      return JSON.stringify({ ...ids, status: 'OK', error: null, payload: await outputOf(job, from, owners) })
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown
      return JSON.stringify({ ...ids, status: 'OK', error: null, payload: null, payload_error: thrown.message })
    }
  }

  /** The body of the webhook of a prediction, which is the prediction alone; undefined for other jobs. */
  async function predictionBody(
    { organizationId, subject }: NewDelivery,
    from: { origin: string },
  ): Promise<string | undefined> {
    if (subject.jobId === null || subject.executionId !== null) return undefined
    const job = await owners.jobs.find(organizationId, subject.jobId)
    return job && isPrediction(job) ? predictionText(job, from, owners) : undefined
  }

  /** Returns the whole body. Throws Failure `not_found` if the object was removed meanwhile. */
  return async (delivery: NewDelivery): Promise<string> => {
    const { event, type, at, form, subject } = delivery
    const from = { origin: delivery.origin ?? origin() }
    if (form === 'fal') return falBody(delivery, from)
    const prediction = delivery.endpointId === null ? await predictionBody(delivery, from) : undefined
    if (prediction !== undefined) return prediction
    const data = type.startsWith('job.')
      ? await jobData(delivery, from)
      : type.startsWith('workflow_execution.node.')
        ? await nodeData(delivery, from)
        : type.startsWith('workflow_execution.')
          ? await executionData(delivery, from)
          : JSON.stringify(subject.data ?? {})
    return messageText({ id: eventId(event), type, at, data })
  }
}
