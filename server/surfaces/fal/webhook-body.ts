import { Failure } from '../../../core/failure.ts'
import { queueIdOf } from '../../../core/ids.ts'
import type { NewDelivery } from '../../../core/store/store.ts'
import type { Owners } from '../../http/request/owners.ts'
import { outputOf } from '../../views/generation-request.ts'
import { falFailure } from './errors.ts'

/** The body of fal's webhooks: the output alone, or the error. */
export async function falWebhookBody(
  delivery: NewDelivery,
  from: { origin: string },
  owners: Owners<'files' | 'jobs'>,
): Promise<string> {
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
