import { z } from 'zod'

const facts = {
  code: z.string().describe('Error code, as in answers with an error.'),
  message: z.string().describe('What happened, as a sentence.'),
  type: z.string().describe('Class of the error, such as `server_error`.'),
}

/** Why something failed, where only that is shown. */
export const ErrorFacts = z.object(facts).meta({ id: 'ErrorSummary', description: 'Why something failed.' })

/** Why a job failed. */
export const JobErrorObject = z
  .object({
    ...facts,
    retryable: z.boolean().describe('Whether another attempt may succeed.'),
    attempt: z.int().describe('Number of the attempt that failed, from 1.'),
  })
  .meta({ id: 'JobError', description: 'Why a job failed.' })
