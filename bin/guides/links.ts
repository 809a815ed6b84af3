/** Where a link of a page leads. */
export type LinkTarget =
  | { kind: 'guide'; topic: string; anchor: string }
  | { kind: 'here'; anchor: string }
  | { kind: 'server'; path: string }
  | { kind: 'web'; url: string }

/**
 * Reads the address of a link: `jobs.md#cancel` another guide, `#cancel` this page, `/docs/configuration` another page
 * of the server, `https://…` the web. Throws for everything else, because it would lead nowhere on one of the surfaces.
 */
export function linkTarget(href: string): LinkTarget {
  const [, topic, anchor = ''] = /^(?:\.\/)?([a-z-]+)\.md(#[\w-]+)?$/.exec(href) ?? []
  if (topic !== undefined) return { kind: 'guide', topic, anchor }
  if (/^#[\w-]+$/.test(href)) return { kind: 'here', anchor: href }
  if (/^\/[\w/.#-]*$/.test(href)) return { kind: 'server', path: href }
  if (/^https?:\/\//.test(href)) return { kind: 'web', url: href }
  throw new Error(`A guide cannot link to '${href}': write jobs.md, #heading, /docs/… or https://…`)
}

/** The anchor of a heading, as GitHub makes it: `What is kept?` is `what-is-kept`. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')

/** The name of a picture of the guides. Throws for one that the server would not have. */
export function imageName(href: string): string {
  const name = /^\.\.\/images\/([a-z-]+\.webp)$/.exec(href)?.[1]
  if (name === undefined)
    throw new Error(`A picture of a guide is in server/docs/images, as ../images/<name>.webp: ${href}`)
  return name
}
