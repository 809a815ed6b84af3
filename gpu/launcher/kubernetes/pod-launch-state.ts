import type { Launch } from '../launcher.ts'
import { type ContainerState, type PodState, statusOf } from './pod-state.ts'

type State = Pick<Launch, 'state' | 'reason' | 'status'>

/** What a pod means for its launch. `event`: the last warning of Kubernetes about it. Pure. */
export function launchStateOf(pod: PodState, event?: string): State {
  const { engine, wrapper, phase, group } = pod
  if (group && pod.isRemoved)
    return { state: 'gone', status: null, reason: 'Its LeaderWorkerSet was deleted.', ...group.fault }
  if (group?.fault) return { state: 'ending', status: null, reason: group.fault.reason }
  const isOver = engine.state === 'ended' || phase === 'Succeeded' || phase === 'Failed' || pod.isRemoved
  if (isOver) {
    const status = statusOf(engine.exitCode)
    return {
      state: 'gone',
      status,
      reason: endReason(pod) ?? (status === null ? 'Its pod was deleted.' : ended(status)),
    }
  }
  if (pod.deletingIn !== null) return { state: 'ending', status: null, reason: endReason(pod) }
  if (wrapper.state === 'ended')
    return { state: 'ending', status: null, reason: 'The container that lets the server reach it has ended.' }
  if (engine.state === 'running' && wrapper.state === 'running') return { state: 'running', status: null, reason: null }
  return { state: 'pending', status: null, reason: pendingReason(pod, event) }
}

const ended = (status: string): string =>
  status.startsWith('SIG') ? `It was ended by ${status}.` : `It has exited with status ${status}.`

/** By Kubernetes' word for why it ends a pod. */
const endReasons: Readonly<Record<string, (pod: PodState) => string>> = {
  Evicted: ({ message }) => `Kubernetes has evicted its pod: ${sentence(message)}`,
  EvictionByEvictionAPI: () => 'Its pod was evicted, as when its node is drained.',
  PreemptionByScheduler: () => 'Kubernetes gave its GPUs to a pod of higher priority.',
  DeletionByTaintManager: ({ node }) => `Its node '${node}' does not answer, or takes no pods any more.`,
  DeletionByPodGC: ({ node }) => `Its node '${node}' is gone.`,
  TerminationByKubelet: ({ node }) => `Its node '${node}' needed its resources, or is shut down.`,
  NodeLost: ({ node }) => `Its node '${node}' does not answer.`,
  NodeShutdown: ({ node }) => `Its node '${node}' is shut down.`,
  Terminated: ({ node }) => `Its node '${node}' is shut down.`,
  DeadlineExceeded: () => 'The time limit of its pod was reached.',
  UnexpectedAdmissionError: ({ message }) => `Its node has refused its pod: ${sentence(message)}`,
}

function endReason(pod: PodState): string | null {
  const words = endReasons[pod.reason]
  if (words) return words(pod)
  if (pod.engine.reason === 'OOMKilled') return 'It used more main memory than its node had for it.'
  if (/StartError|ContainerCannotRun/.test(pod.engine.reason))
    return `Its container could not be started: ${sentence(pod.engine.message)}`
  if (pod.phase === 'Failed' && pod.reason !== '' && pod.engine.exitCode === null)
    return `Kubernetes has ended its pod: ${sentence(pod.message || pod.reason)}`
  return null
}

const imageFault = /^(ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|ImageInspectError)$/

/** Why it does not run yet, as a sentence with Kubernetes' own word. */
function pendingReason(pod: PodState, event: string | undefined): string {
  const { reason, message, node, engine, wrapper } = pod
  if (reason === 'SchedulingGated') return 'It waits for Kubernetes: something holds its pod back (SchedulingGated).'
  if (node === null && message !== '') return `It waits for Kubernetes: ${withoutDot(message)} (${reason}).`
  if (node === null) return unseenReason(pod.group?.incomplete == null ? undefined : event)
  const stuck = [wrapper, engine].find(
    one => one.state === 'waiting' && !/^(ContainerCreating|PodInitializing|)$/.test(one.reason),
  )
  if (stuck) return stuckReason(stuck)
  if (event !== undefined) return `Its pod is being prepared on the node '${node}': ${sentence(event)}`
  return `Its pod is being prepared on the node '${node}', which may pull its image.`
}

/** Why a launch waits whose pods are not there. `event`: the last warning of Kubernetes about what makes them. */
export const unseenReason = (event: string | undefined): string =>
  event === undefined ? 'It waits for Kubernetes.' : `It waits for Kubernetes: ${sentence(event)}`

const stuckReason = ({ reason, message, image }: ContainerState): string =>
  imageFault.test(reason)
    ? `The image '${image}' of its pod cannot be pulled${message === '' ? '' : `: ${withoutDot(message)}`} (${reason}).`
    : `Its container cannot be started${message === '' ? '' : `: ${withoutDot(message)}`} (${reason}).`

const withoutDot = (words: string): string => words.trim().replace(/\.$/, '')
const sentence = (words: string): string => `${withoutDot(words) || 'it does not say why'}.`
