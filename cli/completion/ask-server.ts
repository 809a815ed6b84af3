import { dataDirectory } from '../../core/config.ts'
import { type Client, openClient } from '../client.ts'

/** Somebody waits at a prompt: a server that does not answer in this time has nothing to offer. */
export const answerTimeoutMs = 700

/** What a server knows, for the Tab key. Never throws; nothing known is an empty list. */
export async function askServer<T>(
  dataDirFlag: string | undefined,
  ask: (client: Client, signal: AbortSignal) => Promise<T[]>,
): Promise<T[]> {
  try {
    return await ask(openClient(dataDirectory(dataDirFlag)), AbortSignal.timeout(answerTimeoutMs))
  } catch {
    return []
  }
}

/** So many of the newest are offered. */
export const maxOffered = 20

/** Which jobs and executions a command is for, where it is not for all. */
const fitting: Record<string, (over: boolean) => boolean> = {
  cancel: over => !over,
  watch: over => !over,
  retry: over => over,
  delete: over => over,
}

/** Whether a command can do something with what is over, or is not. */
export const isApplicable = (command: string, over: boolean): boolean => fitting[command]?.(over) ?? true
