import { broken, fine, type InspectionFinding, warning } from '../../core/inspection.ts'
import type { KubernetesPool } from '../../core/models/pools.ts'
import { durationText } from '../../core/quantity-text.ts'
import { ApiRefusal, faultWords } from '../launcher/kubernetes/cluster-api.ts'
import { allCardsOf, cardsOf, type NodeObject } from '../launcher/kubernetes/node-cards.ts'
import { faultFinding, tooManyAsked } from './pool-findings.ts'
import type { Trial } from './trial-launch.ts'
import type { NodeReport } from './trial-server.ts'

/** What doctor says of what a cluster answers. Pure. */

/** A call that has failed: the address, the certificate, or the credentials. */
export function callFinding(thrown: unknown, server: string): InspectionFinding {
  if (thrown instanceof ApiRefusal && (thrown.status === 401 || thrown.status === 403))
    return broken(
      'credentials',
      `${server} does not accept them: ${faultWords(thrown)}`,
      'Tokens end, and end with their service account. This makes one: kubectl create token infer',
    )
  if (thrown instanceof ApiRefusal)
    return broken('cluster', `${server} fails: ${faultWords(thrown)}`, 'Try it by hand: kubectl get --raw /readyz')
  const { code } = thrown as { code?: unknown }
  if (typeof code !== 'string')
    return faultFinding('credentials', (thrown as Error).message, 'Try the same kubeconfig by hand: kubectl get pods')
  if (/CERT|SIGNATURE|ISSUER/.test(code))
    return broken(
      'cluster',
      `the certificate of ${server} is not trusted: ${faultWords(thrown)}`,
      "Correct 'certificate-authority-data' or 'tls-server-name' of the cluster in the kubeconfig.",
    )
  return broken(
    'cluster',
    `${server} does not answer: ${faultWords(thrown)}`,
    "Correct 'server' of the cluster in the kubeconfig, or the network: infer uses no proxy.",
  )
}

/** Whether the account has the rights of a role. `missing`: those that it lacks, as `list events`. */
export const rightsFinding = (missing: readonly string[], namespace: string): InspectionFinding =>
  missing.length === 0
    ? fine('rights in the namespace', `the account may do in '${namespace}' what pods need`)
    : broken(
        'rights in the namespace',
        `the account may not ${missing.join(', ')} in '${namespace}'`,
        adviceFor(namespace),
      )

const adviceFor = (namespace: string): string =>
  `This gives the service account infer all rights that a server needs: infer kubernetes manifest --engines-only --namespace ${namespace} | kubectl apply --filename -`

/** The same for the cluster as a whole, without which less is known. */
export function clusterRightsFinding(
  missing: readonly string[],
  namespace: string,
  maxCards: number | undefined,
): InspectionFinding {
  if (missing.length === 0) return fine('rights in the cluster', 'the account may list nodes and pods')
  const detail = `the account may not ${missing.join(', ')} in the whole cluster`
  if (!missing.includes('list nodes'))
    return warning('rights in the cluster', `${detail}, so GPUs that others use count as free`, adviceFor(namespace))
  return maxCards === undefined
    ? broken('rights in the cluster', `${detail}, and the pool has no 'max_cards'`, adviceFor(namespace))
    : warning(
        'rights in the cluster',
        `${detail}, so the pool has ${maxCards} GPUs, by 'max_cards'`,
        adviceFor(namespace),
      )
}

/** Whether models that span nodes can: `models` are their ids. */
export const setsFinding = (isInstalled: boolean, models: readonly string[]): InspectionFinding =>
  isInstalled
    ? fine('LeaderWorkerSet', `installed, as models that span nodes need: ${models.join(', ')}`)
    : broken(
        'LeaderWorkerSet',
        `not installed, so these models, which span nodes, cannot run: ${models.join(', ')}`,
        "Install its controller, as https://lws.sigs.k8s.io says, or remove 'nodes' of the models.",
      )

/** Whether models that span nodes free their GPUs if the server is removed. `missing`: rights that the account lacks for that. */
export const deadlineFinding = (missing: readonly string[], namespace: string, graceMs: number): InspectionFinding =>
  missing.length === 0
    ? fine('deadline', `engines that span nodes are deleted ${durationText(graceMs)} after this server is gone`)
    : warning(
        'deadline',
        `the account may not ${missing.join(', ')} in '${namespace}', so engines that span nodes keep their GPUs if this server is removed`,
        adviceFor(namespace),
      )

/** The GPUs of the nodes that the pool selects; `needed`: those of its largest engine, `free` those that nobody has. */
export function nodesFinding(
  nodes: readonly NodeObject[],
  settings: KubernetesPool,
  { needed, free }: { needed: number; free: number },
): InspectionFinding {
  const { resource } = settings
  const having = nodes.filter(node => allCardsOf(node, resource) > 0)
  const usable = having.filter(node => cardsOf(node, settings) > 0)
  const names = having.filter(node => !usable.includes(node)).map(({ metadata }) => metadata?.name ?? '')
  const without = names.length === 0 ? '' : `; these nodes take no pods of the pool: ${names.join(', ')}`
  if (usable.length === 0)
    return broken(
      'GPUs',
      `no node ${Object.keys(settings.node_selector).length > 0 ? "that 'node_selector' selects " : ''}has '${resource}' for the pool${without}`,
      "Correct 'resource', 'node_selector' or 'tolerations' of the pool. This shows what nodes have: kubectl describe nodes",
    )
  const most = Math.max(...usable.map(node => cardsOf(node, settings)))
  const all = usable.reduce((sum, node) => sum + cardsOf(node, settings), 0)
  const detail = `${all} of '${resource}' on ${usable.length} ${usable.length === 1 ? 'node' : 'nodes'}, ${free} free${without}`
  if (needed > most) return tooManyAsked(detail, needed, most)
  return names.length === 0
    ? fine('GPUs', detail)
    : warning('GPUs', detail, "They are cordoned, not ready, or have a taint: see 'tolerations' of the pool.")
}

/** Whether Kubernetes would accept the pod of an engine, by its answer to a dry run. */
export function podFinding(refusal: ApiRefusal | undefined, cards: number, namespace: string): InspectionFinding {
  const asked = cards === 0 ? 'a pod without GPUs' : `a pod with ${cards} ${cards === 1 ? 'GPU' : 'GPUs'}`
  if (!refusal) return fine('pod', `Kubernetes accepts ${asked}`)
  const words = faultWords(refusal)
  return broken(
    'pod',
    `Kubernetes refuses ${asked}: ${words}`,
    refusal.status === 404
      ? `Correct 'namespace' of the pool, or make it: kubectl create namespace ${namespace}`
      : /quota/.test(words)
        ? `Ask for a larger quota, or lower 'devices' of the model: kubectl describe quota --namespace ${namespace}`
        : /PodSecurity/.test(words)
          ? 'Images of engines run as root and use volumes of the pool. Use a namespace with a lower pod security level.'
          : "Correct 'service_account', 'volumes' or 'tolerations' of the pool, as Kubernetes says.",
  )
}

/** The image of each model of the pool, and its program there. */
export function imagesFinding(
  models: readonly { id: string; image: { name: string; program?: string | undefined } | undefined }[],
): InspectionFinding {
  const unknown = models.filter(({ image }) => image === undefined)
  if (unknown.length > 0)
    return broken(
      'images',
      `not known for ${unknown.map(({ id }) => `'${id}'`).join(', ')}`,
      "Set 'images' of the pool, or 'image' in the 'pools' of the model. Engines that are part of infer do not run in pods.",
    )
  const shown = new Set(
    models.map(({ image }) => `${image!.name}${image!.program === undefined ? '' : ` (${image!.program})`}`),
  )
  return fine('images', shown.size === 0 ? 'no model uses the pool' : [...shown].join(', '))
}

/** What a pod has shown that has run the image of the wrapper. */
export function trialPodFindings(trial: Trial): InspectionFinding[] {
  if (trial.state === 'failed')
    return [
      broken(
        'trial pod',
        trial.reason.replace(/\.$/, ''),
        "'wrapper_image' of the pool must have Python 3.7 or later as python3, and nodes must be able to pull it.",
      ),
    ]
  if (trial.state === 'waiting')
    return [
      trial.hasStarted
        ? broken(
            'trial pod',
            trial.reason.replace(/\.$/, ''),
            'The server connects to pods directly: run it in the cluster, or on a machine with a route to the addresses of pods, and let network policies allow that.',
          )
        : warning(
            'trial pod',
            `it has not started in time, so no node was tested. ${trial.reason}`,
            'Try it again when the cluster has room and nodes can pull images.',
          ),
    ]
  const { python, missing } = JSON.parse(trial.body) as NodeReport
  const node = trial.node ?? 'its node'
  return [
    fine('trial pod', `a pod on ${node} has answered over TLS, with Python ${python}, and was deleted`),
    missing.length === 0
      ? fine('files there', 'pods have the models that infer.yaml names by path')
      : broken(
          'files there',
          `pods do not have ${missing.join(', ')}`,
          "Put them into a volume of the pool, so that 'mount_path' gives them the same path as here.",
        ),
  ]
}
