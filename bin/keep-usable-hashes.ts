import { readFileSync, writeFileSync } from 'node:fs'
import { argv } from 'node:process'

/**
 * Leaves in a list of requirements the hashes of the files that an installation on Linux can choose: wheels for x86_64 and
 * aarch64 and Python 3.10 and later, and the source only where a package has no such wheel. Run:
 * `npx node bin/keep-usable-hashes.ts gpu/worker/lock-vllm.txt`.
 */
const file = argv[2]!
const usable = /-(py3\d*|py2\.py3|cp3\d?|cp31[0-4])-[a-z0-9_.]+-(any|[\w.]*linux\w*_(x86_64|aarch64)[\w.]*)\.whl$/

interface PackageFile {
  filename: string
  hashes: { sha256: string }
}

/** The files of a package in all versions, as the index lists them. */
async function filesOf(name: string): Promise<PackageFile[]> {
  const accept = 'application/vnd.pypi.simple.v1+json'
  const answer = await fetch(`https://pypi.org/simple/${name}/`, { headers: { accept } })
  if (!answer.ok) throw new Error(`The index has no ${name}: ${answer.status}`)
  return ((await answer.json()) as { files: PackageFile[] }).files
}

const kept: string[] = []
// A requirement is a line with the lines below it that are indented.
for (const requirement of readFileSync(file, 'utf8')
  .trimEnd()
  .split(/\n(?=\S)/)) {
  const [, name, version] = /^([\w.-]+)==([^\s;]+)/.exec(requirement) ?? []
  if (name === undefined || version === undefined) throw new Error(`This is no requirement: ${requirement}`)
  const listed = new Set(requirement.match(/(?<=sha256:)[0-9a-f]{64}/g))
  const files = (await filesOf(name)).filter(({ hashes }) => listed.has(hashes.sha256))
  const wheels = files.filter(({ filename }) => usable.test(filename))
  const chosen = wheels.length > 0 ? wheels : files.filter(({ filename }) => !filename.endsWith('.whl'))
  if (chosen.length === 0) throw new Error(`${name} ${version} has no file for Linux.`)
  const hashes = chosen.map(file => file.hashes.sha256).toSorted()
  const [head] = requirement.split(' \\\n')
  kept.push([head, ...hashes.map(hash => `    --hash=sha256:${hash}`)].join(' \\\n'))
}
writeFileSync(file, `${kept.join('\n')}\n`)
