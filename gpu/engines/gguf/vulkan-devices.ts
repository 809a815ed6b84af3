import { llamaVersion, selfCommand } from '../../../core/assets.ts'
import { cacheDirectory } from '../../../core/extraction.ts'
import { jsonOf } from '../../../core/json.ts'
import { isSameListed, type ListedDevice, type VulkanDevice } from '../../devices/vulkan.ts'
import type { Wrapper } from '../../sandbox/wrapper.ts'
import { findBuilds } from './backend-packages.ts'
import { cacheKey, keepCached, readCached, runTrial, trialEnvironment } from './backend-search.ts'

export interface VulkanSearch {
  /** The folder of GPU builds, which npm installed below its `node_modules`. */
  folder: string
  environment: Readonly<Record<string, string | undefined>>
  wrapper: Wrapper | Promise<Wrapper>
  /** Whether to ignore the cached result. */
  retest?: boolean
  /** Folder of the cached result. */
  cache?: string
  /** The program that lists the devices; default: this program. */
  command?: readonly string[]
}

const deadlineMs = 60_000
/** More devices than any machine has. */
const mostDevices = 32
const cacheFile = 'vulkan-devices.json'

/**
 * Finds the devices of the Vulkan backend, in processes of its own: a driver may crash. The result is cached until the
 * program, the builds, the drivers or the environment change; then `current` starts a new search and returns the previous
 * result until `changed` is called.
 */
export function openVulkanDevices(search: VulkanSearch, changed: () => void = () => {}) {
  const cache = search.cache ?? cacheDirectory({ ...search.environment })
  let key = ''
  let devices: readonly VulkanDevice[] = []
  let searching: Promise<void> | undefined
  let { retest = false } = search

  function refresh(): void {
    const now = cacheKey(search)
    if (now === key && !retest) return
    key = now
    const known = retest ? undefined : (readCached(cache, cacheFile, now) as VulkanDevice[] | undefined)
    retest = false
    if (known) {
      devices = known
      return
    }
    searching = listAll({ ...search, cache })
      // For example a full disk: the cards of the other tools remain.
      .catch(() => [])
      .then(found => {
        // Another driver or build has appeared meanwhile.
        if (key !== now) return
        devices = found
        keepCached(cache, cacheFile, now, found)
        searching = undefined
        changed()
      })
  }

  return {
    current(): readonly VulkanDevice[] {
      refresh()
      return devices
    },
    /** Resolves when the devices are known. */
    settled: async (): Promise<void> => {
      refresh()
      await searching
    },
  }
}

async function listAll(search: VulkanSearch & { cache: string }): Promise<VulkanDevice[]> {
  if (!findBuilds('vulkan', search.folder, llamaVersion).ok) return []
  const named = search.environment.GGML_VK_VISIBLE_DEVICES
  const listed = await list(search, named)
  if (named !== undefined) {
    const indexes = named.match(/\d+/g)?.map(Number) ?? []
    if (listed.length === 1) return [{ ...listed[0]!, index: indexes[0]! }]
    // The memory of several devices is known only by listing each alone.
    const each = await Promise.all(indexes.map(async index => [index, (await list(search, String(index)))[0]] as const))
    return each.flatMap(([index, one]) => (one ? [{ ...one, index }] : []))
  }
  // Without a name the backend leaves out processors and second drivers of a card, but their numbers count.
  const left = [...listed]
  const found: VulkanDevice[] = []
  for (let index = 0; left.length > 0 && index < mostDevices; index++) {
    const [one] = await list(search, String(index))
    if (!one) break
    const at = left.findIndex(other => isSameListed(other, one))
    if (at >= 0) found.push({ ...one, index })
    if (at >= 0) left.splice(at, 1)
  }
  return found
}

/** Lists the devices that are visible by this value of GGML_VK_VISIBLE_DEVICES; none where the driver fails. */
async function list(search: VulkanSearch & { cache: string }, visible: string | undefined): Promise<ListedDevice[]> {
  const { folder, environment, cache, wrapper, command } = search
  const own = selfCommand(['engine', 'try', '--gpu', 'vulkan', '--backends', folder, '--list'])
  const { stdout } = await runTrial({
    argv: command ?? [own.file, ...own.args],
    env: trialEnvironment({ ...environment, GGML_VK_VISIBLE_DEVICES: visible }, cache),
    deadlineMs,
    wrapper: await wrapper,
  })
  // The last line that is complete: a driver may crash after the first.
  const lines = stdout.trim().split('\n').map(jsonOf)
  const answer = lines.findLast(line => Array.isArray((line as { devices?: unknown } | undefined)?.devices))
  return (answer as { devices: ListedDevice[] } | undefined)?.devices ?? []
}
