declare const DOMPurify: { sanitize(html: string, options: Record<string, unknown>): string }
export default DOMPurify
