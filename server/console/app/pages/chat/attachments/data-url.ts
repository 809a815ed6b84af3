const beginning = /^data:(image\/([a-z]+));base64,/

/** Returns the image of a `data:` URL as a file; undefined for another URL, and for one that is damaged. */
export function fileOfDataUrl(url: string): File | undefined {
  const [begin, type, ending] = beginning.exec(url) ?? []
  if (begin === undefined) return undefined
  try {
    const bytes = Uint8Array.from(atob(url.slice(begin.length)), one => one.charCodeAt(0))
    return new File([bytes], `image.${ending}`, { type: type! })
  } catch {
    return undefined
  }
}
