import { join } from 'node:path'
import { dataDirectory } from '../../core/config.ts'
import { readConfig } from '../../core/models/config.ts'
import { offeredModels } from '../../core/models/defaults.ts'
import type { Model } from '../../core/models/model.ts'
import { slugsOf } from '../../core/models/slugs.ts'
import { type Client, memberOf, openClient } from '../client/client.ts'
import { executionOf, findExecution, isOver as isExecutionOver } from '../executions/execution.ts'
import { isOver } from '../jobs/job.ts'
import { fetchOfferedModels } from '../models/status.ts'
import { lengthText } from '../terminal/quantities-text.ts'
import type { CompletionCandidate } from './candidates.ts'

/** Timeout for the server, short because the user waits at a prompt. Milliseconds. */
const answerTimeoutMs = 700

/** Fetches candidates from the server. Never throws; returns an empty list on any failure. */
async function askServer<T>(
  dataDirFlag: string | undefined,
  ask: (client: Client, signal: AbortSignal) => Promise<T[]>,
): Promise<T[]> {
  try {
    return await ask(openClient(dataDirFlag), AbortSignal.timeout(answerTimeoutMs))
  } catch {
    return []
  }
}

/** The newest entries, as many as are offered. */
const newest = { params: { query: { limit: 20 } } }

/** Commands that apply only to finished, or only to unfinished, jobs and executions. */
const applicability: Record<string, (isFinished: boolean) => boolean> = {
  cancel: isFinished => !isFinished,
  watch: isFinished => !isFinished,
  retry: isFinished => isFinished,
  delete: isFinished => isFinished,
}

/** Whether a command applies to a job or execution in this state. */
const isApplicable = (command: string, isFinished: boolean): boolean => applicability[command]?.(isFinished) ?? true

export interface KnownModel {
  id: string
  tasks: readonly string[]
}

/** Returns every slug with its task, from the server or, if none runs, from the configuration. Never throws. */
export async function knownSlugs(dataDirFlag: string | undefined): Promise<KnownModel[]> {
  const dataDir = dataDirectory(dataDirFlag)
  try {
    const models = await fetchOfferedModels(openClient(dataDir), AbortSignal.timeout(answerTimeoutMs))
    return models
      .filter(({ enabled }) => enabled !== false)
      .flatMap(({ slugs = {} }) => Object.entries(slugs).map(([task, id]) => ({ id, tasks: [task] })))
  } catch {
    return configured(dataDir).flatMap(model => Array.from(slugsOf(model), ([task, id]) => ({ id, tasks: [task] })))
  }
}

/** Returns model ids from the server or, if none runs, from the configuration. Never throws; may be empty. */
export async function knownModels(dataDirFlag: string | undefined): Promise<KnownModel[]> {
  const dataDir = dataDirectory(dataDirFlag)
  try {
    const signal = AbortSignal.timeout(answerTimeoutMs)
    return await memberOf(openClient(dataDir).api.GET('/std/v1/models', { signal }), 'data')
  } catch {
    return configured(dataDir)
  }
}

function configured(dataDir: string): Model[] {
  try {
    return [...offeredModels(readConfig(join(dataDir, 'infer.yaml'), false))]
  } catch {
    return []
  }
}

/** Returns ids of the devices. */
export const knownDevices = (dataDirFlag: string | undefined): Promise<CompletionCandidate[]> =>
  askServer(dataDirFlag, async (client, signal) => {
    const devices = await memberOf(client.api.GET('/api/gpu', { signal }), 'devices')
    return devices.map(({ id, name, paused }) => ({ value: id, description: paused ? `${name}, paused` : name }))
  })

/** Returns ids of the pauses of devices. */
export const knownPauses = (dataDirFlag: string | undefined): Promise<CompletionCandidate[]> =>
  askServer(dataDirFlag, async (client, signal) => {
    const pauses = await memberOf(client.api.GET('/api/gpu', { signal }), 'pauses')
    return pauses.map(({ id, devices, when, schedule }) => ({
      value: id,
      description: `${devices?.join(', ') ?? 'all GPUs'} ${schedule?.cron ?? when ?? ''}`.trim(),
    }))
  })

/** Returns ids of the newest jobs that the command applies to. */
export const recentJobs = (dataDirFlag: string | undefined, command = ''): Promise<CompletionCandidate[]> =>
  askServer(dataDirFlag, async (client, signal) => {
    const jobs = await memberOf(client.api.GET('/api/jobs', { ...newest, signal }), 'jobs')
    return jobs
      .filter(({ status }) => isApplicable(command, isOver(status)))
      .map(({ id, status, task, model_id, created_at }) => ({
        value: id,
        description: `${status} ${task} ${model_id}, ${lengthText(Date.now() / 1000 - created_at)} ago`,
      }))
  })

/** Returns ids of the workflows that were changed last. */
export const knownWorkflows = (dataDirFlag: string | undefined): Promise<CompletionCandidate[]> =>
  askServer(dataDirFlag, async (client, signal) => {
    const workflows = await memberOf(client.api.GET('/api/workflows', { ...newest, signal }), 'workflows')
    return workflows.map(({ id, name }) => ({ value: id, description: name }))
  })

/** Returns ids of the newest executions that the command applies to. */
export const recentExecutions = (dataDirFlag: string | undefined, command = ''): Promise<CompletionCandidate[]> =>
  askServer(dataDirFlag, async (client, signal) => {
    const executions = await memberOf(client.api.GET('/api/workflow-executions', { ...newest, signal }), 'executions')
    return executions
      .filter(({ status }) => isApplicable(command, isExecutionOver(status)))
      .map(({ id, status, created_at }) => ({
        value: id,
        description: `${status}, ${lengthText(Date.now() / 1000 - created_at)} ago`,
      }))
  })

/** Returns the nodes of an execution. */
export const nodesOfExecution = (dataDirFlag: string | undefined, text: string): Promise<CompletionCandidate[]> =>
  askServer(dataDirFlag, async (client, signal) => {
    const execution = await executionOf(client, await findExecution(client, text, signal), signal)
    return (execution.nodes ?? []).map(({ node_id, status, task }) => ({
      value: node_id,
      description: `${status} ${task}`,
    }))
  })
