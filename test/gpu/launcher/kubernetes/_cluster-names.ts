import { setTimeout as pause } from 'node:timers/promises'
import { type ClusterApi, orAbsent } from '../../../../gpu/launcher/kubernetes/cluster-api.ts'

interface NamedPod {
  metadata: { labels?: Record<string, string> }
  spec: { hostname?: string; subdomain?: string }
  status?: { podIP?: string }
}
interface Service {
  spec: { clusterIP?: string; publishNotReadyAddresses?: boolean; selector?: Record<string, string> }
}

/**
 * The address that the DNS of a cluster has for the name of a pod, `<hostname>.<subdomain>.<namespace>`: that of the pod which a
 * headless service of its subdomain selects. Waits for both, until `isOver`.
 */
export async function addressOfName(
  api: ClusterApi,
  name: string,
  { signal, isOver }: { signal: AbortSignal; isOver: () => boolean },
): Promise<string> {
  const [host, subdomain, namespace] = name.split('.')
  const find = async <Found>(resource: string, of: string | undefined) =>
    (await orAbsent(() => api.request({ path: `/api/v1/namespaces/${namespace}/${resource}/${of}` }, signal))) as
      | Found
      | undefined
  for (; ; await pause(50, undefined, { ref: false })) {
    if (isOver()) throw new Error(`nobody waits for the address of ${name} any more`)
    const [service, pod] = [await find<Service>('services', subdomain), await find<NamedPod>('pods', host)]
    const { clusterIP, publishNotReadyAddresses: hasAll, selector = {} } = service?.spec ?? {}
    const { metadata: { labels = {} } = {}, spec, status } = pod ?? {}
    const isNamed = spec?.hostname === host && spec?.subdomain === subdomain
    const isSelected = Object.entries(selector).every(([label, value]) => labels[label] === value)
    if (clusterIP === 'None' && hasAll && isNamed && isSelected && status?.podIP) return status.podIP
  }
}
