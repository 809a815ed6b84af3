import { z } from 'zod'
import { type WaitingFor as CoreWaitingFor, waitingReasons } from '../../core/jobs/job-progress.ts'
import { nullableInteger, string } from '../../core/schemas/fields.ts'

/** Why work has not begun. */
export const WaitingFor = z
  .object({
    reason: z.enum(waitingReasons).describe('What it waits for.'),
    detail: string('The same as a sentence for people.'),
    eta_seconds: nullableInteger('Expected seconds until it begins; null if unknown.'),
  })
  .meta({ id: 'WaitingFor', description: 'Why a job or request has not begun.' })

/** The reason in the shape of the API. */
export const waitingObject = ({ reason, detail, etaMs }: CoreWaitingFor): z.input<typeof WaitingFor> => ({
  reason,
  detail,
  eta_seconds: etaMs === null ? null : Math.ceil(etaMs / 1000),
})
