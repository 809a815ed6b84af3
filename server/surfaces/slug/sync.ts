import { Failure } from '../../../core/failure.ts'
import { jobIdOf, queueIdOf } from '../../../core/ids.ts'
import type { Model } from '../../../core/models/model.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import type { Call } from '../../http/request/call.ts'
import { errorHeaders } from '../../http/request/errors.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { errorType, generationErrorBody } from '../../views/generation-error.ts'
import { hasEnded } from '../../views/job-record.ts'
import { failureOf, waitForEnd } from '../../work/wait-for-job.ts'
import { requestAnswer, urlsOf, type ViewOwners } from './view.ts'

/** Answers a synchronous caller: with the result, with the error, or with the addresses of the unfinished request. */
export async function answerInSync(
  call: Call,
  job: JobRecord,
  model: Model,
  waitMs: number,
  owners: ViewOwners & Pick<Owners, 'config'>,
): Promise<JsonText> {
  const { sync_wait: maxWaitMs } = owners.config.limits
  const ended = hasEnded(job)
    ? job
    : await waitForEnd(call, job, { waitMs: Math.min(waitMs, maxWaitMs), startMs: model.dispatch_wait_ms }, owners)
  const request_id = queueIdOf(ended.id)
  if (ended.status === 'completed') return requestAnswer(ended, call, owners, 200)
  const unfinished = !hasEnded(ended)
  const failure = unfinished
    ? new Failure('timeout', `Request ${request_id} has not ended yet and continues. Read it at its response_url.`)
    : failureOf(ended)
  const headers = errorHeaders(failure)
  if (!unfinished && errorType(ended) === 'startup_timeout') headers.push('x-fal-request-timeout-type', 'user')
  for (let at = 0; at < headers.length; at += 2) call.header(headers[at]!, headers[at + 1]!)
  if (unfinished) call.header('retry-after', '2').header('retry-after-ms', '2000')
  const body = {
    ...generationErrorBody(failure, call.id),
    request_id,
    status: unfinished ? 'processing' : 'failed',
    job_id: jobIdOf(request_id),
    ...urlsOf(request_id, call),
  }
  return new JsonText(JSON.stringify(body), failure.status)
}
