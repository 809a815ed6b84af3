/** A work of others inside the program. */
export interface Work {
  /** Name and version. */
  name: string
  license: string
  text: string
}

/** Reads the answer of `/api/system/licenses`: a list of works, then each after a line of dashes. */
export function worksIn(text: string): Work[] {
  const [, ...parts] = text.split(/\n-{80}\n/)
  return parts.map(part => {
    const end = part.indexOf('\n')
    const heading = end === -1 ? part : part.slice(0, end)
    const [, name = heading, license = ''] = /^(.*?) \((.*)\)$/.exec(heading) ?? []
    return { name, license, text: end === -1 ? '' : part.slice(end).trim() }
  })
}
