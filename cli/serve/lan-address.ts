const loopback = /^https?:\/\/(127\.|localhost[:/]|\[::1\])/

/** The first of these base addresses that other machines reach; undefined when there is none. */
export const lanAddress = (urls: readonly string[]): string | undefined => urls.find(url => !loopback.test(`${url}/`))
