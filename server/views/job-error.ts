import { z } from 'zod'
import { boolean, integer, string } from '../../core/schemas/fields.ts'

const facts = {
  code: string('Error code, as in answers with an error.'),
  message: string('What happened, as a sentence.'),
  type: string('Class of the error, such as `server_error`.'),
}

/** Why something failed, where only that is shown. */
export const ErrorFacts = z.object(facts).meta({ id: 'ErrorSummary', description: 'Why something failed.' })

/** Why a job failed. */
export const JobErrorObject = z
  .object({
    ...facts,
    retryable: boolean('Whether another attempt may succeed.'),
    attempt: integer('Number of the attempt that failed, from 1.'),
  })
  .meta({ id: 'JobError', description: 'Why a job failed.' })
