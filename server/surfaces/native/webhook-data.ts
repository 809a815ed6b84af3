import { Failure } from '../../../core/failure.ts'
import type { NewDelivery } from '../../../core/store/store.ts'
import { boundedData } from '../../../core/webhooks/message.ts'
import type { Owners } from '../../http/request/owners.ts'
import { urlOfWait } from '../../views/approval-record.ts'
import { keptOf, shownResult } from '../../views/execution-nodes.ts'
import { executionSummary } from '../../views/execution-record.ts'
import { jobAnswer, type UrlReader } from '../../views/job-record.ts'
import { seconds } from '../../views/view-of.ts'

type BodyOwners = Owners<'cpu' | 'executions' | 'files' | 'jobs' | 'waits'>

const missing = (id: string) => new Failure('not_found', `${id} was removed before its webhook was sent.`)

async function jobData(delivery: NewDelivery, from: UrlReader, owners: BodyOwners) {
  const job = await owners.jobs.find(delivery.organizationId, delivery.subject.jobId!)
  if (!job) throw missing(delivery.subject.jobId!)
  const { text, embedded } = await jobAnswer(job, from, owners)
  const short = { id: job.id, object: 'job', status: job.status, url: `${from.origin}/api/jobs/${job.id}` }
  return embedded.length > 0 ? JSON.stringify(short) : boundedData(text, short)
}

async function executionData({ organizationId, subject }: NewDelivery, from: UrlReader, owners: BodyOwners) {
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

async function nodeData({ organizationId, subject, type }: NewDelivery, from: UrlReader, owners: BodyOwners) {
  const { executionId, nodeId, jobId, attempt, item } = subject
  const url = `${from.origin}/api/workflow-executions/${executionId}/nodes/${encodeURIComponent(nodeId!)}`
  const data: Record<string, unknown> = { execution_id: executionId, node_id: nodeId, job_id: jobId, attempt }
  if (item !== undefined) data.item = item
  const short = { id: executionId, ...data, url }
  if (/\.(waiting|reminder)$/.test(type)) return waitData({ organizationId, subject, short }, from, owners)
  if (!/\.(completed|failed|cached)$/.test(type)) return JSON.stringify(short)
  const ended = (await owners.executions.results(organizationId, executionId!, [nodeId!]))[nodeId!]
  if (!ended) throw missing(executionId!)
  if (ended.error) data.error = ended.error
  const job = jobId === null ? undefined : await owners.jobs.find(organizationId, jobId)
  if (typeof ended.result === 'string' && job) data.result = await shownResult(job.task, ended.result, from, owners)
  return boundedData(JSON.stringify({ id: executionId, ...data, url }), short)
}

/** The job of a node of an execution, or of an item of it; null without one. */
async function jobOf(
  { organizationId, subject: { executionId, nodeId, item } }: Pick<NewDelivery, 'organizationId' | 'subject'>,
  { executions }: BodyOwners,
): Promise<string | null> {
  if (item === undefined)
    return (await executions.nodes(organizationId, executionId!)).find(one => one.nodeId === nodeId)?.jobId ?? null
  const page = { nodeId: nodeId!, after: item - 1, limit: 1 }
  const [found] = await executions.items(organizationId, executionId!, page)
  return found?.index === item ? found.jobId : null
}

/** The data of a node or item that waits, with the address by which it can be answered, as long as it waits. */
async function waitData(
  { short: node, ...delivery }: Pick<NewDelivery, 'organizationId' | 'subject'> & { short: object },
  from: UrlReader,
  owners: BodyOwners,
): Promise<string> {
  const jobId = await jobOf(delivery, owners)
  const wait = jobId === null ? undefined : await owners.waits.find(delivery.organizationId, jobId)
  if (!wait) return JSON.stringify({ ...node, job_id: jobId })
  const { title = null } = JSON.parse(wait.request) as { title?: string | null }
  const waits = { for: wait.awaits, title, url: urlOfWait(wait, from, owners), timeout_at: seconds(wait.dueAt) }
  return JSON.stringify({ ...node, job_id: jobId, waits })
}

/**
 * Returns the data of a webhook as JSON text: the object of the event as its own endpoint shows it, or its id and URL if that
 * is long. Throws Failure `not_found` if the object was removed meanwhile.
 */
export function webhookData(delivery: NewDelivery, from: UrlReader, owners: BodyOwners) {
  const { type, subject } = delivery
  if (type.startsWith('job.')) return jobData(delivery, from, owners)
  if (type.startsWith('workflow_execution.node.')) return nodeData(delivery, from, owners)
  if (type.startsWith('workflow_execution.')) return executionData(delivery, from, owners)
  return JSON.stringify(subject.data ?? {})
}
