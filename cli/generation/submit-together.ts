import { z } from 'zod'
import { jobIdOf } from '../../core/ids.ts'
import type { Client } from '../client/client.ts'
import { type SubmitOptions, submit } from '../jobs/submit.ts'
import type { GenerationItem } from './generate-all.ts'

const Requests = z.looseObject({ requests: z.array(z.looseObject({ request_id: z.string() })) })

/**
 * Submits a video for each aspect ratio with one request, which is sent when the first item is submitted. Returns the
 * submission of the item at an index; all items get the failure of the request.
 */
export function submitTogether(
  connect: () => Client,
  slug: string,
  inputs: Record<string, unknown>,
  { aspects, priority }: { aspects: readonly string[]; priority: string | number | undefined },
): (at: number) => GenerationItem['submit'] {
  let sent: Promise<z.output<typeof Requests>> | undefined
  const request = {
    path: `/slug/${slug}`,
    body: { ...inputs, aspect_ratios: aspects },
    answer: Requests,
    headers: { 'x-fal-queue-priority': priority === 'low' ? 'low' : 'normal' },
  }
  const send = (options: SubmitOptions) => (sent ??= submit(connect, request, options))
  return at => async options => {
    const { requests } = await send(options)
    const queue_id = requests[at]!.request_id
    return { id: jobIdOf(queue_id), queue_id, status: 'pending' }
  }
}
