import { z } from 'zod'
import { optionalString, string } from '../../core/schemas/fields.ts'
import { jobStatuses } from '../../core/store/store.ts'

/** The answer to a submission of a job. */
export const JobCreated = z
  .object({
    id: string('Id of the job: `job_…`.'),
    queue_id: string('Id of the same job under `/slug/requests`: `q_…`.'),
    status: z.enum(jobStatuses).describe('State of the job.'),
    status_url: optionalString('Where to read the job. Only in answers to `Prefer: respond-async`.'),
  })
  .meta({ id: 'JobCreated', description: 'A job that was created.' })

/** The answer to `Prefer: respond-async`, in the reference. */
export const respondAsync = {
  202: { description: 'The job that was created, with the header `Prefer: respond-async`.', response: JobCreated },
} as const
