const loopback = /^https?:\/\/(127\.|localhost[:/]|\[::1\])/

/** Returns the first of these base URLs that other machines can reach; undefined when there is none. */
export const lanAddress = (urls: readonly string[]): string | undefined => urls.find(url => !loopback.test(`${url}/`))
