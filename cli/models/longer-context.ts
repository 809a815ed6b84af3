import type { Api } from '../client/client.ts'
import { storedSentence } from '../client/refusal.ts'

/** Returns a line for each way to a longer context; none from an older server. */
export const longerContextLines = ({ longer_context: ways }: Partial<Pick<Api['EnginePlacement'], 'longer_context'>>) =>
  (ways ?? []).map(storedSentence)
