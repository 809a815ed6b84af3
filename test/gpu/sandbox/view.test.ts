import { describe, expect, test } from 'vitest'
import { type Mount, mountTable, type ResolvedPath } from '../../../gpu/sandbox/mount.ts'
import { mountScript } from '../../../gpu/sandbox/mount-script.ts'
import { bubblewrap } from '../../../gpu/sandbox/sandbox-wrapper.ts'
import { type ViewFacts, viewOf } from '../../../gpu/sandbox/view.ts'

const folder = (path: string, real = path): ResolvedPath => ({ path, real, file: false })
const file = (path: string, real = path): ResolvedPath => ({ path, real, file: true })

const machine: ViewFacts = {
  ownProc: true,
  system: {
    roots: [folder('/usr'), folder('/opt')],
    configuration: [file('/etc/passwd')],
    runtime: [],
    devices: [file('/dev/nvidia0')],
    controls: [folder('/proc/sys')],
  },
  secret: [],
  homes: [],
  read: [],
  write: [],
}

/** A short text for each step: the kind, the target, and the source if it is another path. */
const steps = (facts: Partial<ViewFacts>): string[] =>
  viewOf({ ...machine, ...facts }).map(mount => {
    if (mount.kind !== 'bind') return `${mount.kind === 'empty' && mount.sealed ? 'hide' : mount.kind} ${mount.to}`
    return `${mount.mode} ${mount.to}${mount.from === mount.to ? '' : ` from ${mount.from}`}`
  })
const base = ['read /usr', 'read /opt', 'proc /proc', 'dev /dev', 'empty /tmp']
const below = ['empty /var/tmp', 'read /etc/passwd', 'device /dev/nvidia0', 'read /proc/sys']

const cases: [what: string, facts: Partial<ViewFacts>, expected: string[]][] = [
  ['the system without anything named', {}, [...base, ...below]],
  [
    'a named path is visible, and nothing beside it',
    { read: [folder('/srv/model'), folder('/backup')] },
    [...base, 'read /backup', ...below.slice(0, 3), 'read /srv/model', ...below.slice(3)],
  ],
  [
    'a path that is already visible is not bound again; a hidden one is',
    { read: [folder('/opt/model'), folder('/home/u/model'), file('/usr/bin/x')] },
    [...base, ...below, 'read /home/u/model'],
  ],
  [
    'the data directory is hidden where it would be visible, and the engine’s folders in it are visible',
    { secret: [folder('/opt/infer')], write: [folder('/opt/infer/home/m')], read: [folder('/opt/infer/in')] },
    [...base, ...below, 'hide /opt/infer', 'read /opt/infer/in', 'write /opt/infer/home/m'],
  ],
  ['it is not hidden where nothing is visible', { secret: [folder('/home/u/data')] }, [...base, ...below]],
  [
    'it stays hidden when the configuration shows it, or a folder above it',
    { secret: [folder('/home/u/data')], read: [folder('/home/u/data'), folder('/home/u')] },
    [...base, ...below, 'read /home/u', 'hide /home/u/data'],
  ],
  [
    'also under every name of a folder above it',
    {
      system: { ...machine.system, roots: [...machine.system.roots, folder('/data', '/opt')] },
      secret: [folder('/opt/infer')],
      read: [folder('/home/u/link', '/opt')],
    },
    [
      'read /usr',
      'read /opt',
      'read /data from /opt',
      'proc /proc',
      'dev /dev',
      'empty /tmp',
      'empty /var/tmp',
      'read /etc/passwd',
      'device /dev/nvidia0',
      'read /proc/sys',
      'hide /opt/infer',
      'hide /data/infer',
      'read /home/u/link from /opt',
      'hide /home/u/link/infer',
    ],
  ],
  [
    'a home is hidden, except the visible paths in it',
    { homes: ['/opt/u'], read: [folder('/opt/u/venv')] },
    [...base, ...below, 'hide /opt/u', 'read /opt/u/venv'],
  ],
  [
    'a home that is named is visible',
    { homes: ['/opt/u'], read: [folder('/opt/u')] },
    [...base, ...below, 'hide /opt/u', 'read /opt/u'],
  ],
  [
    'a secret file is empty',
    { secret: [file('/opt/infer.yaml')] },
    [...base, ...below, 'read /opt/infer.yaml from /dev/null'],
  ],
  [
    'a path behind a link is visible under both names',
    { read: [file('/home/u/x.gguf', '/home/disk/x.gguf')] },
    [...base, ...below, 'read /home/disk/x.gguf', 'read /home/u/x.gguf from /home/disk/x.gguf'],
  ],
  [
    'a link in a visible folder leads to the visible target',
    { read: [file('/opt/server', '/home/u/server')], write: [folder('/opt/cache', '/home/u/cache')] },
    [...base, ...below, 'read /home/u/server', 'write /home/u/cache'],
  ],
  [
    'so does one in a folder that is visible under another name',
    {
      system: { ...machine.system, roots: [...machine.system.roots, folder('/lib64', '/usr/lib64')] },
      read: [file('/lib64/ld.so', '/usr/lib/x86/ld.so')],
    },
    [...base, ...below, 'read /lib64 from /usr/lib64'],
  ],
  [
    'a writable path is bound even where it is readable',
    { write: [folder('/opt/cache')], read: [folder('/opt/cache')] },
    [...base, ...below, 'write /opt/cache'],
  ],
  ['a writable device is bound as a device', { write: [file('/dev/x')] }, [...base, ...below, 'device /dev/x']],
]

test.each(cases)('%s', (_what, facts, expected) => {
  expect(steps(facts).toSorted()).toEqual(expected.toSorted())
  const depths = viewOf({ ...machine, ...facts }).map(({ to }) => to.split('/').length)
  expect(depths).toEqual(depths.toSorted((a, b) => a - b))
})

const mounts: Mount[] = viewOf({
  ...machine,
  secret: [folder('/usr/data')],
  read: [file('/tmp/a b/model.gguf')],
  write: [folder('/usr/data/home')],
})

describe('bubblewrap', () => {
  const { prefix } = bubblewrap({ programs: { bwrap: '/usr/bin/bwrap' }, userNamespace: false }, mounts, {
    network: false,
  })
  const text = prefix.join(' ')

  test('every step is an option, in their order, and after them nothing can be changed', () => {
    expect(text).toContain('--ro-bind /usr /usr --ro-bind /opt /opt --proc /proc --dev /dev --perms 1777 --tmpfs /tmp')
    expect(text).toContain('--dev-bind /dev/nvidia0 /dev/nvidia0 --ro-bind /proc/sys /proc/sys')
    expect(text).toContain('--tmpfs /usr/data --ro-bind /tmp/a b/model.gguf /tmp/a b/model.gguf --bind /usr/data/home')
    expect(text).toContain('--remount-ro /usr/data --remount-ro / --cap-drop ALL --cap-add CAP_DAC_OVERRIDE')
    expect(text).toMatch(
      /^\/usr\/bin\/bwrap --die-with-parent --unshare-pid --unshare-ipc --unshare-uts --unshare-net /,
    )
  })

  test('in a user namespace no privilege is kept', () => {
    const own = bubblewrap({ programs: {}, userNamespace: true }, mounts, { network: true }).prefix
    expect(own).toContain('--unshare-user')
    expect(own).not.toContain('--cap-add')
    expect(own).not.toContain('--unshare-net')
  })

  test('the /proc of the machine is shown where no other is available', () => {
    const view = viewOf({ ...machine, ownProc: false })
    const all = bubblewrap({ programs: {}, userNamespace: true }, view, { network: true }).prefix.join(' ')
    expect(all).toContain('--bind /proc /proc')
    expect(all).toContain('--ro-bind /proc/sys /proc/sys')
  })
})

describe('the tools of util-linux', () => {
  const table = mountTable(
    [
      '22 1 254:0 / / rw,relatime - ext4 /dev/vda rw',
      '23 22 0:21 / /usr/local rw,nosuid,noatime shared:1 - ext4 /dev/vdb rw',
      '24 22 0:22 / /usr/my\\040disk rw,relatime - fuse.sshfs x rw',
      '25 22 0:23 / /tmp/a\\040b rw,nodev,noexec - tmpfs x rw',
      '',
    ].join('\n'),
  )
  const options = { network: false, root: '/data/run/root', uid: 1000, gid: 100, table }
  const { prefix } = mountScript({ programs: {}, userNamespace: true }, mounts, options)
  const phases = prefix.slice(
    prefix.indexOf('/data/run/root') + 1,
    prefix.indexOf('--', prefix.indexOf('/data/run/root')),
  )

  test('each mount is repeated below the new root, read-only including the mounts below it', () => {
    expect(phases[2]).toContain('/usr /data/run/root/usr none rbind,ro,nosuid,nodev,relatime 0 0')
    expect(phases[2]).toContain('again /data/run/root/usr/local none remount,bind,ro,nosuid,nodev,noatime 0 0')
    expect(phases[2]).not.toContain('sshfs')
    expect(phases.join('\n')).toContain(
      '/tmp/a\\040b/model.gguf /data/run/root/tmp/a\\040b/model.gguf none rbind,ro,nosuid,nodev,noexec,strictatime 0 0',
    )
  })

  test('a target inside a mount is created after that mount', () => {
    expect(phases[0]!.split('\n').toSorted()).toEqual(['.old', 'dev', 'etc', 'opt', 'proc', 'tmp', 'usr', 'var/tmp'])
    expect(phases[1]).toBe('etc/passwd')
    expect(phases).toHaveLength(9)
    expect(phases[3]!.split('\n').toSorted()).toEqual(['dev', 'tmp/a b'])
    expect(phases[4]!.split('\n').toSorted()).toEqual(['dev/nvidia0', 'tmp/a b/model.gguf'])
    expect(phases[6]!.split('\n').toSorted()).toEqual(['dev', 'dev/pts', 'dev/shm', 'usr/data/home'])
    expect(phases[8]!.split('\n').slice(-2)).toEqual([
      'again /data/run/root/usr/data none remount,bind,ro,nosuid,nodev 0 0',
      'again /data/run/root none remount,bind,ro,nosuid,nodev 0 0',
    ])
  })

  test('the engine runs as the user of infer, without privileges', () => {
    expect(prefix.join(' ')).toContain('--user --map-user=1000 --map-group=100 -- setpriv --bounding-set=-all')
    expect(prefix).toContain('--net')
    const direct = mountScript({ programs: {}, userNamespace: false }, mounts, { ...options, network: true }).prefix
    expect(direct.join(' ')).toContain('-- setpriv --bounding-set=-all,+dac_override,+ipc_lock')
    expect(direct).not.toContain('--user')
    expect(direct).not.toContain('--net')
  })
})
