import { type Client, openClient } from '../client/client.ts'

/** Timeout for the server, short because the user waits at a prompt. Milliseconds. */
export const answerTimeoutMs = 700

/** Fetches candidates from the server. Never throws; returns an empty list on any failure. */
export async function askServer<T>(
  dataDirFlag: string | undefined,
  ask: (client: Client, signal: AbortSignal) => Promise<T[]>,
): Promise<T[]> {
  try {
    return await ask(openClient(dataDirFlag), AbortSignal.timeout(answerTimeoutMs))
  } catch {
    return []
  }
}

/** Number of newest entries to offer. */
export const maxOffered = 20

/** Commands that apply only to finished, or only to unfinished, jobs and executions. */
const applicability: Record<string, (isFinished: boolean) => boolean> = {
  cancel: isFinished => !isFinished,
  watch: isFinished => !isFinished,
  retry: isFinished => isFinished,
  delete: isFinished => isFinished,
}

/** Whether a command applies to a job or execution in this state. */
export const isApplicable = (command: string, isFinished: boolean): boolean =>
  applicability[command]?.(isFinished) ?? true
