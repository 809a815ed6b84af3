import type { NewDelivery } from '../core/store/store.ts'
import { messageText } from '../core/webhooks/message.ts'
import type { Owners } from './http/request/owners.ts'
import { falWebhookBody } from './surfaces/fal/view.ts'
import { webhookData } from './surfaces/native/webhook-data.ts'
import { isPrediction, predictionText } from './surfaces/replicate/view.ts'
import { eventId } from './views/job-event.ts'
import type { UrlReader } from './views/job-record.ts'

type BodyOwners = Owners<'cpu' | 'executions' | 'files' | 'jobs' | 'waits'>

/**
 * Makes the bodies of webhooks: the object of the event as its own endpoint shows it, or its id and URL if that is long.
 * `origin`: what this server's own URLs begin with, where the delivery does not say.
 */
export function openWebhookBodies(owners: BodyOwners, origin: () => string) {
  /** The body of the webhook of a prediction, which is the prediction alone; undefined for other jobs. */
  async function predictionBody({ organizationId, subject }: NewDelivery, from: UrlReader) {
    if (subject.jobId === null || subject.executionId !== null) return undefined
    const job = await owners.jobs.find(organizationId, subject.jobId)
    return job && isPrediction(job) ? predictionText(job, from, owners) : undefined
  }

  /** Returns the whole body. Throws Failure `not_found` if the object was removed meanwhile. */
  return async (delivery: NewDelivery): Promise<string> => {
    const { event, type, at, form } = delivery
    const from = { origin: delivery.origin ?? origin() }
    if (form === 'fal') return falWebhookBody(delivery, from, owners)
    const prediction = delivery.endpointId === null ? await predictionBody(delivery, from) : undefined
    if (prediction !== undefined) return prediction
    const data = await webhookData(delivery, from, owners)
    return messageText({ id: eventId(event), type, at, data })
  }
}
