import { z } from 'zod'
import { string } from '../../../core/schemas/fields.ts'
import { failureOfIssues } from '../../../core/schemas/issues.ts'
import type { Owners } from '../../http/request/owners.ts'
import { queryOf } from '../../http/request/query.ts'
import { routeOf } from '../../http/request/route.ts'
import { findJob } from '../../views/job-record.ts'
import { unfinishedImage } from '../../work/unfinished-image.ts'

const route = routeOf({ tag: 'Jobs' })

const Query = z.strictObject({
  image: z.coerce.number().int().min(0).max(15).default(0).describe('Position of the image in the request, from 0.'),
})

/** The newest unfinished image of a job that runs. */
export const previewRoute = (owners: Pick<Owners, 'cpu' | 'files' | 'jobs' | 'log'>) =>
  route('GET /api/jobs/:id/preview', 'user:read', {
    summary: 'Get preview of job',
    description:
      'Returns the newest unfinished image of a job that runs, as WebP: of a video, one frame. The request must have `previews`, and the engine must be able to. `previews` of the job counts them.',
    errorCodes: ['not_found', 'output_expired'],
    params: z.object({ id: string('Id of the job: `job_…`.') }),
    query: Query,
    media: ['image/webp'],
    otherAnswers: {
      204: { description: 'There is none now: it has not begun, has ended, or none was requested. There is no body.' },
    },
    async answer(call) {
      const job = await findJob(call.params['id'] ?? '', call, owners)
      const given = queryOf(call)
      const { data: query, error } = Query.safeParse(given)
      if (error) throw failureOfIssues(error, given, Query)
      const preview = owners.jobs.previewsOf(job.id).findLast(({ image }) => image === query.image)
      const bytes = preview && (await unfinishedImage(job, preview, { format: 'webp', quality: 80 }, owners))
      // Not an error: a client that shows a job asks again and again, and browsers log every 404.
      if (!bytes) {
        call.head(204, 'image/webp', ['cache-control', 'no-store'])
        call.res.end()
        return
      }
      call.send(200, bytes, 'image/webp', ['cache-control', 'no-store'])
    },
  })
